/* Myelin: topics and services between the processes of a host, in shared memory, and to other hosts.
 * C11. The guide is docs/reference/c.md; the details are in docs/reference/library.md. C++: myelin.hpp.
 *
 *     myelin_node *node;
 *     myelin_topic *topic;
 *     myelin_publisher *publisher;
 *     if (myelin_node_open("camera", NULL, &node) != MYELIN_OK ||
 *         myelin_topic_open(node, "hello", NULL, NULL, &topic) != MYELIN_OK ||
 *         myelin_publisher_open(topic, NULL, &publisher) != MYELIN_OK)
 *       return fprintf(stderr, "%s\n", myelin_error_message()), 1;
 *     myelin_publisher_publish_copy(publisher, "hello", 5, NULL);
 *
 * ERRORS    Every function returns a myelin_code: MYELIN_OK, MYELIN_NOTHING (there is nothing, or nothing
 *           in time), or a negative one; then myelin_error_message() says what to do. When a function
 *           fails, nothing has been published or taken.
 * HANDLES   Pointers to opaque types are handles, not addresses. A handle that is NULL, closed, of another
 *           kind or invalid gives MYELIN_ERROR_HANDLE. This is certain as long as no thread closes a handle
 *           while another thread is inside a call with it. The same holds for the ids in samples, requests
 *           and replies, and for loans, also for copies of the structs. Close each handle that you open, in
 *           any order.
 * STRUCTS   Structs that begin with `size` may grow at their end in later versions. Set `size` by
 *           MYELIN_INIT(name); members that you do not set are 0, which is the default. A program that was
 *           compiled with an older header works with a newer library.
 * THREADS   Any thread may use any handle, several threads at once unless the function says "one thread at
 *           a time".
 * TEXT      UTF-8, ended by a zero. The library copies the text that it gets.
 * TIMES     Nanoseconds, of CLOCK_MONOTONIC; MYELIN_FOREVER is no limit.
 * EXIT      For its peers, a process that ends without closing its node has died, also if it returns from `main`
 *           or calls `exit`. The library closes nothing then, because other threads may still use it.
 * FORK      In a child, inherited handles give MYELIN_ERROR_FORKED; open a new node there.
 *
 * Made by cbindgen from crates/myelin-c; do not edit. */

#ifndef MYELIN_H
#define MYELIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header: 65,536 * major + 256 * minor + patch. Compare myelin_version(). */
#define MYELIN_VERSION 0x000100u

/* No time limit. */
#define MYELIN_FOREVER UINT64_MAX

/* Begins a struct: struct myelin_sample sample = MYELIN_INIT(myelin_sample); */
#ifdef __cplusplus
#define MYELIN_INIT(name) {sizeof(struct name)}
#else
#define MYELIN_INIT(name) {.size = sizeof(struct name)}
#endif

// A type: a number, a struct, or an array of these.
typedef struct myelin_type {
  // enum myelin_kind.
  int32_t kind;
  // For MYELIN_STRUCT; otherwise NULL.
  const struct myelin_struct *structure;
  // The lengths of an array, the outermost first; 0 ends them. {0}: no array.
  size_t lengths[4];
} myelin_type;


// The number of `lateness_buckets`.
#define MYELIN_LATENESS_BUCKETS 32

// The result of a function: 0 (`MYELIN_OK`), 1 (`MYELIN_NOTHING`: there is nothing, or nothing in
// time; this is no error), or a negative code. `myelin_error_message()` then says what to do.
enum myelin_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  MYELIN_OK = 0,
  // There is nothing to take, or nothing came within the limit.
  MYELIN_NOTHING = 1,
  // A handle is NULL, closed, of another kind, or in use by an outer call of this thread.
  MYELIN_ERROR_HANDLE = -1,
  // A name, an option or another argument is not valid; the message names it.
  MYELIN_ERROR_SETTING = -2,
  // The other side has another type.
  MYELIN_ERROR_TYPE = -3,
  // A limit on memory, or the machine's memory or shared-memory space, is used up.
  MYELIN_ERROR_MEMORY = -4,
  // A payload is larger than the publisher allows.
  MYELIN_ERROR_PAYLOAD_SIZE = -5,
  // Too many loans, samples, calls, handles or files: the message says which.
  MYELIN_ERROR_TOO_MANY = -6,
  // A loan has been published or discarded already, or is another publisher's.
  MYELIN_ERROR_LOAN = -7,
  // A reliable subscriber has not read in time; nothing was published.
  MYELIN_ERROR_RELIABLE_TIMEOUT = -8,
  // No server came within the limit.
  MYELIN_ERROR_NO_SERVER = -9,
  // The server has ended before it replied.
  MYELIN_ERROR_SERVER_GONE = -10,
  // The server has dropped the request.
  MYELIN_ERROR_NO_REPLY = -11,
  // No reply came within the limit.
  MYELIN_ERROR_REPLY_TIMEOUT = -12,
  // A peer wrote invalid data; it has been disconnected, others go on.
  MYELIN_ERROR_PEER_CORRUPT = -13,
  // The other side has another version of the shared-memory layout.
  MYELIN_ERROR_VERSION = -14,
  // The file system or the system's settings forbid it.
  MYELIN_ERROR_PERMISSION = -15,
  // The handle belongs to the parent process: open a node after fork.
  MYELIN_ERROR_FORKED = -16,
  // A callback inside a publish uses the publisher that is publishing.
  MYELIN_ERROR_REENTERED = -17,
  // The network is not available.
  MYELIN_ERROR_NETWORK = -18,
  // A system call failed.
  MYELIN_ERROR_SYSTEM = -19,
  // A defect in this library: please report the message.
  MYELIN_ERROR_BUG = -20,
  // Another thread has closed the object meanwhile.
  MYELIN_ERROR_CLOSED = -21,
  // Another thread is inside a call that one thread at a time may make.
  MYELIN_ERROR_BUSY = -22,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_code myelin_code;
#else
typedef int32_t myelin_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of an event. More kinds may be added: ignore those that you do not know.
enum myelin_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The other side has come: `endpoint`, `pid`.
  MYELIN_EVENT_MATCHED = 1,
  // The other side has gone, or has `died`.
  MYELIN_EVENT_UNMATCHED = 2,
  // The other side offers less than requested: `text` says what to change.
  MYELIN_EVENT_QOS_REDUCED = 3,
  // `number` samples were lost.
  MYELIN_EVENT_LOST = 4,
  // A late subscriber is no longer waited for.
  MYELIN_EVENT_PASSED_OVER = 5,
  // The subscriber is waited for again.
  MYELIN_EVENT_CAUGHT_UP = 6,
  // The other side cannot be matched: `text` says why.
  MYELIN_EVENT_INCOMPATIBLE = 7,
  // A publisher was silent for longer than `deadline_ns`: once for each silence, a quarter of it late at
  // most. The next sample ends it, without an event. At a publisher, `endpoint` is its own.
  MYELIN_EVENT_DEADLINE_MISSED = 8,
  // A publisher gave no sign of life for longer than the subscriber's `liveliness_ns`: it neither
  // published nor called `myelin_publisher_assert_liveliness`. Once for each silence.
  MYELIN_EVENT_LIVELINESS_LOST = 9,
  // The publisher gives signs of life again.
  MYELIN_EVENT_LIVELINESS_REGAINED = 10,
  // A sample of `number` bytes from another host found no room: `text` says what to do.
  MYELIN_EVENT_BUFFER_TOO_SMALL = 11,
  // The other side wrote invalid data, and is disconnected.
  MYELIN_EVENT_CORRUPT = 12,
  // The two sides fit, and one has no room for the match: `text` says why. It is tried again.
  MYELIN_EVENT_REFUSED = 13,
  // An event that this library has no number for yet.
  MYELIN_EVENT_OTHER = 0,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_event_kind myelin_event_kind;
#else
typedef int32_t myelin_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A setting that two endpoints of a topic do not agree on.
enum myelin_setting
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // None.
  MYELIN_SETTING_NONE = 0,
  // The type of the samples.
  MYELIN_SETTING_TYPE = 1,
  // The depth.
  MYELIN_SETTING_DEPTH = 2,
  // Reliability.
  MYELIN_SETTING_RELIABILITY = 3,
  // Whether samples are kept for late subscribers.
  MYELIN_SETTING_DURABILITY = 4,
  // The deadline.
  MYELIN_SETTING_DEADLINE = 5,
  // Who asserts liveliness.
  MYELIN_SETTING_LIVELINESS = 6,
  // How often liveliness is asserted.
  MYELIN_SETTING_LIVELINESS_LEASE = 7,
  // One that this library has no number for yet.
  MYELIN_SETTING_OTHER = -1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_setting myelin_setting;
#else
typedef int32_t myelin_setting;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Where a node or an endpoint is.
enum myelin_location
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // On this host: it is reached through shared memory.
  MYELIN_LOCATION_THIS_HOST = 0,
  // On another host: it is reached through the network.
  MYELIN_LOCATION_OTHER_HOST = 1,
  // In a DDS program that does not use Myelin, wherever it runs.
  MYELIN_LOCATION_DDS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_location myelin_location;
#else
typedef int32_t myelin_location;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which settings of the other side match.
enum myelin_matching
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // All. A subscriber that requests more than its publisher offers gets
  // MYELIN_EVENT_QOS_REDUCED.
  MYELIN_MATCHING_EXACT = 0,
  // Only if the publisher offers at least what the subscriber requests, by the rules of DDS:
  // reliability, history, deadline, liveliness. Otherwise both get MYELIN_EVENT_INCOMPATIBLE. It
  // applies if one of the two sides chooses it, on this host.
  MYELIN_MATCHING_REQUESTED_OFFERED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_matching myelin_matching;
#else
typedef int32_t myelin_matching;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a match.
enum myelin_match_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The two sides are connecting.
  MYELIN_MATCH_PENDING = 0,
  // Samples flow.
  MYELIN_MATCH_MATCHED = 1,
  // There is no match: `reason` says why.
  MYELIN_MATCH_REFUSED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_match_state myelin_match_state;
#else
typedef int32_t myelin_match_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A change of what is there.
enum myelin_graph_change
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // An endpoint has come.
  MYELIN_GRAPH_FOUND = 0,
  // An endpoint has gone.
  MYELIN_GRAPH_GONE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_graph_change myelin_graph_change;
#else
typedef int32_t myelin_graph_change;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Whether other hosts can be reached.
enum myelin_network
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The node has no network.
  MYELIN_NETWORK_OFF = 0,
  // Not yet; as soon as the network is up.
  MYELIN_NETWORK_WAITING = 1,
  // Yes.
  MYELIN_NETWORK_UP = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_network myelin_network;
#else
typedef int32_t myelin_network;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How many values a sample has.
enum myelin_form
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // One value of `type`. In Rust `T`.
  MYELIN_VALUE = 0,
  // A slice of `type` whose length each sample chooses. In Rust `[T]`.
  MYELIN_SLICE = 1,
  // A `header`, then a slice of `type` whose length each sample chooses. The slice begins at the
  // first byte behind the header that is aligned for its elements. In Rust `(H, [T])`.
  MYELIN_HEADER_SLICE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_form myelin_form;
#else
typedef int32_t myelin_form;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of a value.
enum myelin_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  MYELIN_U8 = 1,
  MYELIN_U16 = 2,
  MYELIN_U32 = 3,
  MYELIN_U64 = 4,
  MYELIN_U128 = 5,
  MYELIN_I8 = 6,
  MYELIN_I16 = 7,
  MYELIN_I32 = 8,
  MYELIN_I64 = 9,
  MYELIN_I128 = 10,
  MYELIN_F32 = 11,
  MYELIN_F64 = 12,
  // Rust's usize: not the same as u64.
  MYELIN_USIZE = 13,
  MYELIN_ISIZE = 14,
  // A byte: 0 is false, any other true.
  MYELIN_BOOL = 15,
  // The struct that `structure` describes.
  MYELIN_STRUCT = 16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_kind myelin_kind;
#else
typedef int32_t myelin_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a sample has no payload.
enum myelin_missing
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // There is one, or only the header was taken.
  MYELIN_MISSING_NOTHING = 0,
  // Its publisher used the memory for another sample before the payload was copied.
  MYELIN_MISSING_REUSED = 1,
  // Its memory could not be mapped.
  MYELIN_MISSING_UNMAPPED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_missing myelin_missing;
#else
typedef int32_t myelin_missing;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Whether a publisher waits for a subscriber that is behind.
enum myelin_reliability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It never waits; a subscriber that is behind loses the oldest samples and can read how many.
  MYELIN_BEST_EFFORT = 0,
  // It waits for at most `reliable_ns`, then passes the late subscriber over.
  MYELIN_RELIABLE = 1,
  // It waits for at most `reliable_ns`, then publishing fails for all subscribers.
  MYELIN_RELIABLE_OR_FAIL = 2,
  // Like MYELIN_BEST_EFFORT, and samples lost on the way from and to other hosts are sent again,
  // as long as they are among the newest `depth`: ROS 2's KEEP_LAST, reliable.
  MYELIN_KEEP_LAST = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_reliability myelin_reliability;
#else
typedef int32_t myelin_reliability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a subscriber, a client, a server or a wait set waits.
enum myelin_wait
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Spins for a while, then sleeps.
  MYELIN_WAIT_ADAPTIVE = 0,
  // Spins: uses a whole core.
  MYELIN_WAIT_POLL = 1,
  // Sleeps in the kernel.
  MYELIN_WAIT_BLOCK = 2,
  // Learns the period of a topic and spins only for the next sample; at most 2 % of a core.
  MYELIN_WAIT_PREDICTIVE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_wait myelin_wait;
#else
typedef int32_t myelin_wait;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A function that Myelin calls. Any thread may use the handle.
typedef struct myelin_callback myelin_callback;

// A client of a service: sends requests and gets a reply to each. One thread at a time uses it.
typedef struct myelin_client myelin_client;

// A node's view of its domain at one moment. Any thread may read it.
typedef struct myelin_graph myelin_graph;

// Watches topics and nodes: rates, losses, matches, CPU and memory. One thread at a time uses it.
typedef struct myelin_graph_watcher myelin_graph_watcher;

// Ends a wait from another thread. Any thread may trigger it, and a signal handler.
typedef struct myelin_guard_condition myelin_guard_condition;

// A process's part in a domain. Any thread may use it, several at once.
typedef struct myelin_node myelin_node;

// Looks at the samples of a topic on this host, while its publishers do nothing for it. One thread
// at a time uses it; any thread may interrupt it.
typedef struct myelin_observer myelin_observer;

// Publishes samples of a topic. One thread at a time uses it and its loans.
typedef struct myelin_publisher myelin_publisher;

// The server of a service: takes requests. One thread at a time uses it; any thread may interrupt
// it.
typedef struct myelin_server myelin_server;

// Takes samples of a topic. One thread at a time uses it; any thread may interrupt it.
typedef struct myelin_subscriber myelin_subscriber;

// A name, a type and settings from which publishers and subscribers are made. Any thread may use
// it.
typedef struct myelin_topic myelin_topic;

// One thread waits for many things: subscribers and servers of its node, guard conditions, timers. Any
// thread adds, removes and closes meanwhile: a running wait takes it into account at once.
typedef struct myelin_wait_set myelin_wait_set;

// The payload of a topic. The call that gets it reads it, and does not keep it.
typedef struct myelin_payload {
  // sizeof(struct myelin_payload).
  size_t size;
  // `enum myelin_form`.
  int32_t form;
  // The value, or an element.
  myelin_type type;
  // The header of MYELIN_HEADER_SLICE.
  myelin_type header;
} myelin_payload;

// A reply where its server wrote it. Release each once, in any thread.
typedef struct myelin_reply {
  // sizeof(struct myelin_reply): MYELIN_INIT(myelin_reply).
  size_t size;
  // The reply's id. Do not change it.
  uint64_t id;
  // The reply, read-only; valid until it is released.
  const void *data;
  // How many bytes.
  size_t bytes;
} myelin_reply;

// Memory for one sample, which the program owns until it is published or discarded.
typedef struct myelin_loan {
  // sizeof(struct myelin_loan): MYELIN_INIT(myelin_loan).
  size_t size;
  // The loan's id at its owner. Do not change it.
  uint64_t id;
  // Where to write, aligned to 64: zeros, or bytes of an earlier sample. Write all of it. Valid
  // until it is published or discarded, or its owner is closed. With `dds_cdr` and more than 104
  // B, the alignment is that of the bytes behind the message's header of 4 B.
  void *data;
  // How many bytes.
  size_t bytes;
} myelin_loan;

// An event. Members that its kind does not use are 0.
typedef struct myelin_event {
  // sizeof(struct myelin_event): MYELIN_INIT(myelin_event).
  size_t size;
  // Its kind.
  myelin_event_kind kind;
  // The other side's process; 0 on another host, and for kinds without a process.
  uint32_t pid;
  // The other side.
  uint64_t endpoint;
  // A number of samples or bytes.
  uint64_t number;
  // The reason, and what to do; or NULL. Valid until the next event is taken from the same
  // handle, or the handle is closed.
  const char *text;
  // Whether the other side's process has ended without closing its node: also by a return from `main`.
  bool died;
  // For MYELIN_EVENT_QOS_REDUCED and MYELIN_EVENT_INCOMPATIBLE: what the publisher offers and what
  // the subscriber requests, or NULL; valid like `text`.
  const char *offered;
  const char *requested;
  // Of which setting; MYELIN_SETTING_NONE for another version of the library.
  myelin_setting setting;
} myelin_event;

// A node. Texts are valid until the graph is closed.
typedef struct myelin_graph_node {
  // sizeof(struct myelin_graph_node): MYELIN_INIT(myelin_graph_node).
  size_t size;
  // Its id.
  uint64_t node;
  // Its name.
  const char *name;
  // Its process.
  uint32_t pid;
  // Its namespace; empty for none.
  const char *node_namespace;
  // The program.
  const char *program;
  // The name of its host. Containers on one host have names of their own.
  const char *host;
  // The language of the library that it uses: `C`, `C++`, `Python`, `Rust` or another.
  const char *language;
  // The version of the library.
  const char *version;
  // The user that its process runs as.
  uint32_t user;
  // The number of its host, if that is another one.
  uint64_t host_id;
  // Where it is.
  myelin_location location;
  // How long the threads of its process have run since the update before, in percent of one core;
  // NaN if that is not known. All that follows is 0, and this is NaN, in a graph that is not of a
  // `myelin_graph_watcher`.
  double cpu_percent;
  // The resident memory (RSS) of its process; 0 if that is not known.
  uint64_t memory_bytes;
  // How many publishers and subscribers it has on the watched topics.
  size_t publishers;
  size_t subscribers;
  // How many threads its process has; 0 if that is not known.
  uint32_t threads;
  // Whether a signal or a debugger has stopped its process.
  bool is_stopped;
  // Whether it has not answered in time: it is stopped, or busy.
  bool is_silent;
  // Whether its answer was cut off at a limit: some of its matches are missing.
  bool is_incomplete;
} myelin_graph_node;

// A publisher or subscriber. Of an endpoint of a DDS program, DDS announces no depth and no layout:
// they are 0; its history is 0, or 1 for any number.
typedef struct myelin_graph_endpoint {
  // sizeof(struct myelin_graph_endpoint): MYELIN_INIT(myelin_graph_endpoint).
  size_t size;
  // Its id, as in events and samples.
  uint64_t endpoint;
  // Its node's id; 0 for an endpoint of a DDS program.
  uint64_t node;
  // Its topic; for an endpoint of a DDS program, the name in DDS.
  const char *topic;
  // Its type's name; for an endpoint of a DDS program, the name in DDS.
  const char *type_name;
  // Its type's layout hash.
  uint64_t type_hash;
  // Its depth, in samples.
  uint32_t depth;
  // Its history, in samples.
  uint32_t transient_local;
  // Whether it publishes; else it subscribes.
  bool is_publisher;
  // Whether it is reliable.
  bool is_reliable;
  // Its GUID in DDS, if it is reached through the network, or belongs to this node while there is a
  // network; otherwise zeros.
  uint8_t dds_guid[16];
  // When it was made, in ns since 1970 by the clock of the host.
  uint64_t created_ns;
  // The longest time between two samples; MYELIN_FOREVER: any. Here and below, a publisher offers
  // the value and a subscriber requests it.
  uint64_t deadline_ns;
  // Its liveliness lease; MYELIN_FOREVER: none.
  uint64_t liveliness_ns;
  // How long its samples are valid; MYELIN_FOREVER: for ever.
  uint64_t lifespan_ns;
  // When it matches.
  myelin_matching matching;
  // Whether only its program asserts liveliness, for this endpoint alone.
  bool is_alive_by_topic;
  // Whether samples lost on the way to or from other hosts are sent again, although no publisher
  // waits: MYELIN_KEEP_LAST.
  bool resends;
  // The number of its host, if that is another one.
  uint64_t host_id;
  // Its topic and its type in DDS, or NULL if it has no GUID there.
  const char *dds_topic;
  const char *dds_type;
  // Its user data in DDS, as its program set it.
  const uint8_t *dds_user_data;
  // How many bytes.
  size_t dds_user_data_bytes;
  // Where it is.
  myelin_location location;
  // How many samples a publisher has published, or a subscriber has taken, in a second, since its
  // counters were read before; NaN if that is not known. All that follows is 0, and this is NaN, in a
  // graph that is not of a `myelin_graph_watcher`.
  double rate_hz;
  // How many samples a subscriber has lost since its counters were read before.
  uint64_t lost_in_interval;
  // When its counters were read, by `myelin_now`; 0 if never.
  uint64_t counted_ns;
  // Its matches: their number, and the index of the first one.
  size_t matches;
  size_t first_match;
  // Whether its node has not answered in time: its matches are those that were known before.
  bool is_silent;
} myelin_graph_endpoint;

// What an endpoint has counted since it was made. It stands in the endpoint's memory, where nodes of
// its domain read it, also while its process is stopped. The values come from its process, which can
// lie. Times are by `myelin_now`. What only the other kind of endpoint counts is 0.
typedef struct myelin_graph_counters {
  // sizeof(struct myelin_graph_counters): MYELIN_INIT(myelin_graph_counters).
  size_t size;
  // Bytes of its shared memory.
  uint64_t memory_bytes;
  // How many samples a publisher has published.
  uint64_t published;
  // Bytes of their payloads.
  uint64_t published_bytes;
  // When it published last; 0 if it has not, or if its samples carry no time.
  uint64_t last_published_ns;
  // How many loans and copies were refused for lack of memory.
  uint64_t refused_loans;
  // How many samples a subscriber has taken.
  uint64_t taken;
  // How many it has lost, for any of the four reasons that follow.
  uint64_t lost;
  // Because it was further behind than its depth or its publisher's.
  uint64_t lost_overwritten;
  // Because a reliable publisher did not wait for it any longer.
  uint64_t lost_passed_over;
  // On the way from another host.
  uint64_t lost_network;
  // Because there was no memory for a sample that had come from another host, or for its
  // publisher's.
  uint64_t lost_memory;
  // How many samples in slots its user holds now.
  uint64_t held;
  // When the sample that it took last was published; 0 if it has taken none, or if the sample
  // carries no time.
  uint64_t last_taken_ns;
  // How old samples were when it took them: about 10 samples a second are measured, if they carry
  // their time. How many were measured.
  uint64_t lateness_measured;
  // The age of the last one of them, and of the oldest.
  uint64_t lateness_last_ns;
  uint64_t lateness_max_ns;
  // So many were so old: the first less than 128 ns, number `i` from `64 << i` ns to `128 << i` ns, and
  // the last one also older.
  uint64_t lateness_buckets[MYELIN_LATENESS_BUCKETS];
} myelin_graph_counters;

// A match of an endpoint of this node.
typedef struct myelin_graph_match {
  // sizeof(struct myelin_graph_match): MYELIN_INIT(myelin_graph_match).
  size_t size;
  // The endpoint of this node.
  uint64_t endpoint;
  // The other side.
  uint64_t other;
  // Why there is no match, and what to do; or NULL.
  const char *reason;
  // Its state.
  myelin_match_state state;
  // What the publisher offers and what the subscriber requests, or NULL.
  const char *offered;
  const char *requested;
  // The setting that differs; MYELIN_SETTING_NONE: one side lacks something.
  myelin_setting setting;
} myelin_graph_match;

// A named byte string of a node or an endpoint, which others see in the graph, for programs that
// know what it means. A node and an endpoint have at most 32, with at most 1,024 bytes in all,
// names included.
typedef struct myelin_attribute {
  // Its name: 1 to 64 bytes.
  const char *name;
  // Its value, which need not be text.
  const void *value;
  // Bytes of the value.
  size_t bytes;
} myelin_attribute;

// The time of a watcher's graph.
typedef struct myelin_graph_time {
  // sizeof(struct myelin_graph_time): MYELIN_INIT(myelin_graph_time).
  size_t size;
  // When the counters were read, by `myelin_now`.
  uint64_t at_ns;
  // How long before that the update before was; 0 at the first one.
  uint64_t since_ns;
} myelin_graph_time;

// A topic that is watched. Texts are valid until the graph is closed.
typedef struct myelin_graph_topic {
  // sizeof(struct myelin_graph_topic): MYELIN_INIT(myelin_graph_topic).
  size_t size;
  // Its name.
  const char *name;
  // The name of its type; if its endpoints have several, all of them, with `, ` between.
  const char *type_name;
  // How many types it has: more than one means that endpoints do not match.
  size_t types;
  // The index of its first endpoint. Its publishers are in a row, then its subscribers.
  size_t first_endpoint;
  // How many publishers and subscribers it has.
  size_t publishers;
  size_t subscribers;
  // How many samples its publishers have published in a second, all those together whose rate is
  // known; NaN if it is known of none. A topic without a publisher has 0.
  double rate_hz;
  // Bytes of its endpoints' shared memory, as far as known.
  uint64_t memory_bytes;
  // How many samples its subscribers have lost since the update before.
  uint64_t lost;
  // How many pairs of a publisher and a subscriber do not match although they share the topic.
  size_t refused;
} myelin_graph_topic;

// Options of a node. 0 in a member, or NULL instead of the struct, is the default.
typedef struct myelin_node_options {
  // sizeof(struct myelin_node_options): MYELIN_INIT(myelin_node_options).
  size_t size;
  // Whether to use `domain`; otherwise MYELIN_DOMAIN in the environment, or 0.
  bool has_domain;
  // Nodes of different domains do not see each other.
  uint32_t domain;
  // Meets all members of this group, by name or gid, instead of only the user's own programs.
  const char *group;
  // The folder of the sockets; otherwise MYELIN_RUNTIME_DIR, or one in /dev/shm.
  const char *runtime_dir;
  // Keeps all CPUs of the machine from deep sleep while the node lives.
  bool latency_guard;
  // Other hosts, through CycloneDDS: 1 yes, -1 no, 0 as in MYELIN_NETWORK.
  int32_t network;
  // The interface that leads to them, by name or address; otherwise MYELIN_INTERFACE, or the best.
  const char *interface;
  // Hosts to look for, separated by commas; otherwise MYELIN_PEERS, or multicast.
  const char *peers;
  // How long others wait for a sign of life from this process before they consider it dead; ns.
  uint64_t lease_ns;
  // The first part of the names of the node's threads.
  const char *thread_name;
  // The CPUs that they may run on: `thread_cpu_count` numbers.
  const size_t *thread_cpus;
  // 0: the CPUs of the process's first thread.
  size_t thread_cpu_count;
  // 1 to 99: SCHED_FIFO with this priority; 0: the usual policy.
  int32_t thread_fifo_priority;
  // The process's user data in DDS: text of the form `key=value;`, such as ROS 2's `enclave=/;`;
  // NULL: none.
  const char *dds_user_data;
  // Hosts find each other by multicast, too, besides `peers`.
  bool multicast;
  // A namespace that others see in the graph, such as /robot1; NULL: none. It changes no name of
  // a topic.
  const char *node_namespace;
  // The language that others see; NULL: C.
  const char *language;
  // What else others see: `attribute_count` elements.
  const struct myelin_attribute *attributes;
  // 0: none.
  size_t attribute_count;
  // How long the call that makes a publisher or subscriber waits at most until it is matched with
  // those that exist on this host; 0: 20 ms.
  uint64_t match_limit_ns;
  // The keystore that `enclave` is in: a folder in the layout of SROS 2; otherwise MYELIN_KEYSTORE.
  const char *keystore;
  // Who this process is for other hosts, such as /robot/camera: what it sends is encrypted, and it
  // talks to processes of the same keystore alone; otherwise MYELIN_ENCLAVE, or no protection.
  const char *enclave;
  // Large samples go by TCP to Myelin nodes of other hosts, at a fraction of the CPU of RTPS: 1 yes,
  // -1 no, 0 as in MYELIN_BULK_LANE, or else yes.
  int32_t bulk_lane;
  // The largest datagrams that are sent, in bytes without the headers of IP and UDP: 1,350 to 65,500;
  // 0: as in MYELIN_DATAGRAM_BYTES, or else 1,400 on a wireless interface and 65,500 on others.
  uint64_t datagram_bytes;
  // The mark (DSCP) of the packets of large samples that go by TCP, 1 to 63, for switches and access
  // points: 8 (CS1) is for what may wait; 0: as in MYELIN_BULK_LANE_DSCP, or else none.
  uint64_t bulk_lane_dscp;
} myelin_node_options;

// A sample as an observer has seen it.
typedef struct myelin_observed {
  // sizeof(struct myelin_observed): MYELIN_INIT(myelin_observed).
  size_t size;
  // Its publisher's endpoint id, as in graphs.
  uint64_t publisher;
  // How many samples its publisher published before it.
  uint64_t sequence;
  // When it was published, by `myelin_now`; 0 if its publisher adds no timestamps.
  uint64_t published_ns;
  // How many bytes the payload has, also if it is missing.
  uint64_t length;
  // How many samples of the same publisher, between the previous one and this one, were
  // overwritten before the observer looked.
  uint64_t overwritten_before;
  // A copy of the payload, aligned as in `myelin_sample.data`; valid until the next take of this
  // observer, or its close. NULL if it is missing, or only the header was taken.
  const void *data;
  // Bytes of `data`; 0 if it is NULL.
  size_t bytes;
  // `enum myelin_missing`: why there is no payload.
  int32_t missing;
} myelin_observed;

// A publisher of an observer, and what was seen of it.
typedef struct myelin_observed_publisher {
  // sizeof(struct myelin_observed_publisher): MYELIN_INIT(myelin_observed_publisher).
  size_t size;
  // Its endpoint id, as in graphs.
  uint64_t publisher;
  // The first sample that counts: 0 if the publisher came after the observer.
  uint64_t first;
  // Samples that it has published: `first`, `seen`, `overwritten`, and those to be taken.
  uint64_t published;
  // Samples that were given, with or without payload.
  uint64_t seen;
  // Samples that were overwritten before the observer looked.
  uint64_t overwritten;
  // Samples, among those seen, whose payload was gone.
  uint64_t without_payload;
  // Whether it has left or died, and everything is read.
  bool has_gone;
} myelin_observed_publisher;

// Settings of a publisher. 0 in a member, or NULL instead of the struct, is the default.
typedef struct myelin_publisher_options {
  // sizeof(struct myelin_publisher_options): MYELIN_INIT(myelin_publisher_options).
  size_t size;
  // How many loans over 104 B it may have at once: 1 to 4,096; 0: 8.
  uint32_t loans_max;
  // Whether samples carry the time when they were published; false: if MYELIN_TIMESTAMPS is 1.
  bool timestamps;
  // The largest payload, in bytes; 0: 2^40 - 1.
  uint64_t payload_bytes_max;
  // Memory for its payloads, in bytes; 0: half the machine's memory.
  uint64_t memory_max;
  // Whether it publishes only to subscribers on this host, even on a node with a network.
  bool this_host_only;
  // The liveliness lease that it offers: it publishes or asserts its liveliness at least once in
  // this time; 0: none. Others see it, and MYELIN_MATCHING_REQUESTED_OFFERED compares it.
  uint64_t liveliness_ns;
} myelin_publisher_options;

// The result of a publish.
typedef struct myelin_published {
  // sizeof(struct myelin_published): MYELIN_INIT(myelin_published).
  size_t size;
  // How many samples its publisher published before it.
  uint64_t sequence;
  // How many late reliable subscribers were not waited for.
  uint32_t passed_over;
} myelin_published;

// A sample where its publisher wrote it. Release each once, in any thread. Held samples keep their
// memory: a subscriber's `held_max` bounds them.
typedef struct myelin_sample {
  // sizeof(struct myelin_sample): MYELIN_INIT(myelin_sample).
  size_t size;
  // The sample's id. Do not change it.
  uint64_t id;
  // The payload, read-only, aligned to 64 (with `dds_cdr` as in `myelin_loan.data`); valid until
  // it is released. NULL if there is none.
  const void *data;
  // How many bytes.
  size_t bytes;
  // How many samples its publisher published before it.
  uint64_t sequence;
  // How many samples of the same publisher were lost between the previously taken one and this
  // one.
  uint64_t lost_before;
  // When it was published, by `myelin_now`; 0 if its publisher adds no timestamps.
  uint64_t published_ns;
  // Its publisher's endpoint id, as in events.
  uint64_t publisher;
} myelin_sample;

// A client's request. Reply to it, then release it, once; any thread may, at once or later. If it
// is released without a reply, its client gets MYELIN_ERROR_NO_REPLY.
typedef struct myelin_request {
  // sizeof(struct myelin_request): MYELIN_INIT(myelin_request).
  size_t size;
  // The request's id. Do not change it.
  uint64_t id;
  // The request, read-only; valid until it is released.
  const void *data;
  // How many bytes.
  size_t bytes;
  // The client's endpoint id, as in events.
  uint64_t client;
} myelin_request;

// A function that is called with each request. The program owns the request: it replies at once or
// later, and releases it. The struct itself is valid during the call: copy it to keep it. The
// function must not throw or longjmp.
typedef void (*myelin_on_request)(struct myelin_request *request, void *context);

// Settings of a subscriber. 0 in a member, or NULL instead of the struct, is the default.
typedef struct myelin_subscriber_options {
  // sizeof(struct myelin_subscriber_options): MYELIN_INIT(myelin_subscriber_options).
  size_t size;
  // How many samples over 104 B it may hold at once: 1 to 4,096; 0: 16.
  uint32_t held_max;
  // How many publishers it may be matched with: 1 to 4,096; 0: 16.
  uint32_t publishers_max;
  // `enum myelin_wait`: how it waits.
  int32_t wait;
  // Whether it has a descriptor for an epoll loop: `myelin_subscriber_descriptor`.
  bool descriptor;
  // An event is raised for a publisher that neither publishes nor asserts its liveliness for so
  // many ns; 0: none. Publishers set nothing for it.
  uint64_t liveliness_ns;
  // Memory for samples from other hosts, in bytes; 0: half the machine's memory.
  uint64_t memory_max;
  // Matches only publishers of other nodes, not those of its own node.
  bool ignore_own_node;
} myelin_subscriber_options;

// A function that is called with each sample. The sample is lent for the length of the call;
// `myelin_sample_clone` keeps it. The function must not throw or longjmp.
typedef void (*myelin_on_sample)(const struct myelin_sample *sample, void *context);

// Settings of both sides. 0 in a member, or NULL instead of the struct, is the default.
typedef struct myelin_topic_options {
  // sizeof(struct myelin_topic_options): MYELIN_INIT(myelin_topic_options).
  size_t size;
  // How many samples a subscriber can be behind without a loss: 1 to 65,535; 0: 8.
  uint32_t depth;
  // `enum myelin_reliability`.
  int32_t reliability;
  // How long a reliable publisher waits, in ns. Used only if `reliability` is reliable.
  uint64_t reliable_ns;
  // How many samples a late subscriber gets; at most the depth.
  uint32_t transient_local;
  // The longest time between two samples of a publisher, in ns; 0: none. Each side that sets it
  // gets an event for a longer silence; the two sides are not compared. A subscriber watches
  // each publisher from the match on: a publisher that never came misses no deadline. A
  // publisher watches itself.
  uint64_t deadline_ns;
  // The name of an IDL type whose CDR is the payload, for other DDS programs; NULL: only
  // Myelin's.
  const char *dds_type;
  // The topic's name among DDS programs; NULL: the same name.
  const char *dds_name;
  // Samples are whole CDR messages of `dds_type`, with their header: for a topic of bytes.
  bool dds_cdr;
  // User data of the endpoints in DDS, in front of Myelin's own: text of the form `key=value;`,
  // such as ROS 2's `typehash=`; NULL: none.
  const char *dds_user_data;
  // Meets other DDS programs of one DDS implementation only, by its number in RTPS; 0: all.
  uint16_t dds_vendor;
  // What else others see of the endpoints: `attribute_count` elements.
  const struct myelin_attribute *attributes;
  // 0: none.
  size_t attribute_count;
  // `enum myelin_matching`.
  int32_t matching;
  // For a topic of bytes: what `schema` is, such as `ros2msg`; NULL: none.
  const char *schema_encoding;
  // How its samples are to be read by programs that were not compiled with their type: of
  // `schema_bytes` bytes, at most 65,536.
  const void *schema;
  // Bytes of `schema`.
  size_t schema_bytes;
  // How long a sample is valid, in ns; 0: for ever. The library drops no sample for it: others see
  // it in the graph.
  uint64_t lifespan_ns;
  // Whether only the program asserts liveliness, for an endpoint alone, as in ROS 2's
  // MANUAL_BY_TOPIC. Others see it, and MYELIN_MATCHING_REQUESTED_OFFERED compares it.
  bool is_alive_by_topic;
} myelin_topic_options;

// A field of a struct.
typedef struct myelin_field {
  // Its name, as in Rust.
  const char *name;
  // Its offset in bytes.
  size_t offset;
  // Its type.
  myelin_type type;
} myelin_field;

// A struct. Its fields follow one another without padding: fill gaps with fields like
// `uint8_t _pad[4]`. Names, types and offsets of the fields make the layout hash that both sides of a
// topic compare; `MYELIN_STRUCT_OF` describes it.
typedef struct myelin_struct {
  // sizeof(struct myelin_struct).
  size_t size;
  // Its name for messages.
  const char *name;
  // sizeof the described struct.
  size_t bytes;
  // Its alignment: at most 64.
  size_t align;
  // Its fields, in order.
  const struct myelin_field *fields;
  // How many.
  size_t field_count;
  // sizeof(struct myelin_field).
  size_t field_size;
} myelin_struct;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Ends the calls, and waits for a running call; from inside a callback it does not wait.
myelin_code myelin_callback_close(struct myelin_callback *callback);

// How many calls have returned so far.
myelin_code myelin_callback_calls(struct myelin_callback *callback, uint64_t *calls);

// How many samples were lost so far.
myelin_code myelin_callback_lost(struct myelin_callback *callback, uint64_t *samples);

// The latest error of a take, once: its code, and its message as the message of this call.
// MYELIN_OK if there was none. Most likely the function keeps too many samples.
myelin_code myelin_callback_error(struct myelin_callback *callback);

// Reports that a function of the program, called by Myelin, has thrown `what`. The report goes
// where Myelin writes its own warnings: to stderr, or to the program's `tracing` subscriber. For
// wrappers in languages with exceptions. They must catch all exceptions: none may be thrown
// through Myelin. `function` names the function that set it. Any thread.
void myelin_report_exception(const char *function, const char *what);

// Makes a client of a service with requests and replies of these types; NULL is any number of
// bytes. It finds the server, now or when the server starts. The types' alignment is at most 16.
myelin_code myelin_client_open(struct myelin_node *node,
                               const char *name,
                               const struct myelin_payload *request,
                               const struct myelin_payload *reply,
                               struct myelin_client **client);

// Closes it, with its loans and calls. An error from a callback inside a call of the same client.
myelin_code myelin_client_close(struct myelin_client *client);

// Sends a copy of `bytes` bytes, a whole payload of the request's type, and waits for the reply,
// for at most `limit_ns` (MYELIN_FOREVER: no limit). The server may also start within this time.
// MYELIN_ERROR_NO_SERVER, MYELIN_ERROR_REPLY_TIMEOUT, MYELIN_ERROR_SERVER_GONE and
// MYELIN_ERROR_NO_REPLY say why there is no reply.
myelin_code myelin_client_call(struct myelin_client *client,
                               const void *data,
                               size_t bytes,
                               uint64_t limit_ns,
                               struct myelin_reply *reply);

// Sends a copy of a request and does not wait: pass `call` to `myelin_client_receive`. Up to 64
// calls may be open at once.
myelin_code myelin_client_send(struct myelin_client *client,
                               const void *data,
                               size_t bytes,
                               uint64_t *call);

// Lends memory for a request of `bytes` bytes.
myelin_code myelin_client_loan(struct myelin_client *client,
                               size_t bytes,
                               struct myelin_loan *loan);

// Sends a loan without a copy, and does not wait.
myelin_code myelin_client_send_loan(struct myelin_client *client,
                                    struct myelin_loan *loan,
                                    uint64_t *call);

// Gives a loan back without sending it.
myelin_code myelin_client_discard(struct myelin_client *client, struct myelin_loan *loan);

// The reply to a call; waits for it for at most `limit_ns` (0: not at all). MYELIN_NOTHING if the
// time is over: you can wait again. A reply, or an error that says why there will be none, ends
// the call.
myelin_code myelin_client_receive(struct myelin_client *client,
                                  uint64_t call,
                                  uint64_t limit_ns,
                                  struct myelin_reply *reply);

// Stops waiting for a call. The call goes on at the server, and its reply is dropped.
myelin_code myelin_client_abandon(struct myelin_client *client, uint64_t call);

// Waits until there is a server that takes requests, for at most `limit_ns`; MYELIN_NOTHING if the
// time is over.
myelin_code myelin_client_wait_for_service(struct myelin_client *client, uint64_t limit_ns);

// How many servers there are now: more than one is a mistake.
myelin_code myelin_client_servers(struct myelin_client *client, size_t *servers);

// How many replies came too late, and were dropped.
myelin_code myelin_client_late(struct myelin_client *client, uint64_t *replies);

// How it waits: `enum myelin_wait`.
myelin_code myelin_client_set_wait(struct myelin_client *client, int32_t wait);

// The next event of its matches with servers; MYELIN_NOTHING if there is none.
myelin_code myelin_client_event(struct myelin_client *client, struct myelin_event *event);

// Releases a reply. `data` becomes NULL; a second time gives MYELIN_ERROR_HANDLE. Any thread, also
// after its client is closed.
myelin_code myelin_reply_release(struct myelin_reply *reply);

// The message of this thread's latest function that returned a negative code: one sentence for
// people, with the remedy. UTF-8; never NULL; empty if there was none; at most 2,047 bytes. Valid
// until the next error of the same thread. Any thread, and a signal handler.
const char *myelin_error_message(void);

// The version of the running library: 65,536 × major + 256 × minor + patch. Compare it with
// `MYELIN_VERSION`, the version of the header. Any thread.
uint32_t myelin_version(void);

// `CLOCK_MONOTONIC` in nanoseconds, the clock of all timestamps: the same for all processes of a
// host. Any thread.
uint64_t myelin_now(void);

// A node's view of its domain now. It takes memory for each endpoint in the domain; close it.
myelin_code myelin_node_graph(struct myelin_node *node, struct myelin_graph **graph);

// The same, and asks all other nodes of this host for their matches and for the memory in which their
// endpoints count, and waits until all have answered, for at most so long. From then on
// `myelin_node_graph` knows these counters, too, and those of a stopped process: the node keeps a page or
// two of each endpoint mapped, read-only.
myelin_code myelin_node_graph_within(struct myelin_node *node,
                                     uint64_t limit_ns,
                                     struct myelin_graph **graph);

// A graph with one endpoint of this host and no node, match or other endpoint: it costs one
// look-up, however many endpoints there are. MYELIN_NOTHING if there is no such endpoint now.
// Close the graph.
myelin_code myelin_node_endpoint(struct myelin_node *node,
                                 uint64_t endpoint,
                                 struct myelin_graph **graph);

// How often `myelin_node_graph` has changed so far. While the number stays the same, a graph that was
// taken after it was read is still the newest, except for its matches.
myelin_code myelin_node_graph_changes(struct myelin_node *node,
                                      uint64_t *changes);

// Closes a graph.
myelin_code myelin_graph_close(struct myelin_graph *graph);

// The node with this number, from 0 on; MYELIN_NOTHING after the last.
myelin_code myelin_graph_node_at(struct myelin_graph *graph,
                                 size_t index,
                                 struct myelin_graph_node *node);

// The endpoint with this number, from 0 on; MYELIN_NOTHING after the last.
myelin_code myelin_graph_endpoint_at(struct myelin_graph *graph,
                                     size_t index,
                                     struct myelin_graph_endpoint *endpoint);

// What the endpoint with this number has counted; MYELIN_NOTHING if that is not known: it is on
// another host, or its node has never answered `myelin_node_graph_within`.
myelin_code myelin_graph_counters_at(struct myelin_graph *graph,
                                     size_t index,
                                     struct myelin_graph_counters *counters);

// The match with this number, from 0 on; MYELIN_NOTHING after the last.
myelin_code myelin_graph_match_at(struct myelin_graph *graph,
                                  size_t index,
                                  struct myelin_graph_match *match_);

// The attribute with this number, from 0 on, of the node or endpoint with this id, by name;
// MYELIN_NOTHING after the last. The name and the value are valid until the graph is closed.
myelin_code myelin_graph_attribute_at(struct myelin_graph *graph,
                                      uint64_t id,
                                      size_t index,
                                      struct myelin_attribute *attribute);

// Triggers the guard condition from now on whenever `myelin_node_graph` has changed: an endpoint of the
// domain came or went or, with a network, other hosts or DDS programs changed what they announce.
// A node triggers one guard condition, the latest one set.
myelin_code myelin_node_on_graph_change(struct myelin_node *node,
                                        struct myelin_guard_condition *guard);

// Watches the topics whose names match `pattern`, and all nodes: `*` stands for any text and `?` for
// one character. Nothing happens before the first update. Close the watcher.
myelin_code myelin_graph_watcher_open(struct myelin_node *node,
                                      const char *pattern,
                                      struct myelin_graph_watcher **watcher);

// Asks all nodes of this host, waits until they have answered, for at most `limit_ns`, and computes
// what has changed since the last call: rates and losses, what came and went, CPU and memory. A node
// that does not answer makes each call take the whole limit. Any thread may read the graph; its
// endpoints are ordered by topic. Close it; the watcher does not need it.
myelin_code myelin_graph_watcher_update(struct myelin_graph_watcher *watcher,
                                        uint64_t limit_ns,
                                        struct myelin_graph **graph);

// Closes a watcher.
myelin_code myelin_graph_watcher_close(struct myelin_graph_watcher *watcher);

// When a watcher's graph was taken; MYELIN_NOTHING for a graph that is not of a watcher.
myelin_code myelin_graph_time_of(struct myelin_graph *graph, struct myelin_graph_time *time);

// The topic with this number, from 0 on, by name, of a watcher's graph; MYELIN_NOTHING after the
// last.
myelin_code myelin_graph_topic_at(struct myelin_graph *graph,
                                  size_t index,
                                  struct myelin_graph_topic *topic);

// The change with this number, from 0 on: the endpoints that went and came with the update of a
// watcher's graph, those that went first; at the first update, all that are there. MYELIN_NOTHING
// after the last.
myelin_code myelin_graph_change_at(struct myelin_graph *graph,
                                   size_t index,
                                   myelin_graph_change *change,
                                   struct myelin_graph_endpoint *endpoint);

// Opens a node. `name` is for people. `options` may be NULL.
myelin_code myelin_node_open(const char *name,
                             const struct myelin_node_options *options,
                             struct myelin_node **node);

// Closes a node's handle. Objects made from it go on.
myelin_code myelin_node_close(struct myelin_node *node);

// Whether other hosts can be reached now, and what is missing, or which interface is used: as much
// of the text as fits into `capacity` bytes, including its final zero. `text` may be NULL if
// `capacity` is 0.
myelin_code myelin_node_network(struct myelin_node *node,
                                char *text,
                                size_t capacity,
                                myelin_network *state);

// The folder of a node's sockets. Two nodes meet if they use the same folder, even by different
// paths. As much of its path as fits into `capacity` bytes, including its final zero.
myelin_code myelin_node_runtime_dir(struct myelin_node *node, char *text, size_t capacity);

// Makes an observer of a topic: it looks at the samples of the publishers on this host without
// being known to them, for tools. A publisher does not count it as matched, does not wait for it or
// wake it, and keeps no memory for it. Of the topic's settings only `history` has an effect.
myelin_code myelin_observer_open(struct myelin_topic *topic, struct myelin_observer **observer);

// Closes it.
myelin_code myelin_observer_close(struct myelin_observer *observer);

// The next sample, if there is one; never waits. MYELIN_NOTHING if there is none. Samples of one
// publisher come in order.
myelin_code myelin_observer_take(struct myelin_observer *observer, struct myelin_observed *sample);

// The header of the next sample, if there is one, without looking at its payload. The sample is
// then taken.
myelin_code myelin_observer_take_header(struct myelin_observer *observer,
                                        struct myelin_observed *header);

// Waits until there is a sample to take, for at most `limit_ns` (MYELIN_FOREVER: no limit): looks
// at intervals of 1 to 100 ms, by depth and rate of the publishers. MYELIN_NOTHING if the time is
// over, or if the wait was interrupted.
myelin_code myelin_observer_wait(struct myelin_observer *observer, uint64_t limit_ns);

// Ends the running wait, or else the next one. Any thread, and a signal handler.
myelin_code myelin_observer_interrupt(struct myelin_observer *observer);

// How long to wait before the next look, in ns, for a loop of your own.
myelin_code myelin_observer_interval(struct myelin_observer *observer, uint64_t *interval_ns);

// One of its publishers, by an index from 0 on; MYELIN_NOTHING behind the last one. Index 0 looks,
// and the other indices belong to the same look. Publishers that have gone since the look before
// are listed once more.
myelin_code myelin_observer_publisher(struct myelin_observer *observer,
                                      size_t index,
                                      struct myelin_observed_publisher *publisher);

// The layout hash of a described payload, which both sides of a topic compare: the same as for a
// Rust type with the same fields. Any thread.
myelin_code myelin_payload_hash(const struct myelin_payload *payload, uint64_t *hash);

// Makes a publisher of a topic. `options` may be NULL. On return it is matched with the
// subscribers that exist on this host, except those of processes that do not answer within
// `match_limit_ns` of the node's options.
myelin_code myelin_publisher_open(struct myelin_topic *topic,
                                  const struct myelin_publisher_options *options,
                                  struct myelin_publisher **publisher);

// Closes it. Its loans are discarded; subscribers can still take published samples. An error from
// a callback inside a publish of the same publisher.
myelin_code myelin_publisher_close(struct myelin_publisher *publisher);

// Publishes a copy of `bytes` bytes, a whole payload of the topic's type. `published` may be NULL.
myelin_code myelin_publisher_publish_copy(struct myelin_publisher *publisher,
                                          const void *data,
                                          size_t bytes,
                                          struct myelin_published *published);

// Lends memory for a payload of `bytes` bytes. Several loans may be out at once.
myelin_code myelin_publisher_loan(struct myelin_publisher *publisher,
                                  size_t bytes,
                                  struct myelin_loan *loan);

// Publishes a loan, without a copy if it has more than 104 bytes. The program does not own it any
// more, also if this fails, and `data` becomes NULL. A second time gives MYELIN_ERROR_LOAN.
// `published` may be NULL.
myelin_code myelin_publisher_publish(struct myelin_publisher *publisher,
                                     struct myelin_loan *loan,
                                     struct myelin_published *published);

// Gives a loan back without publishing it.
myelin_code myelin_publisher_discard(struct myelin_publisher *publisher, struct myelin_loan *loan);

// Allocates memory for `count` payloads of `bytes` bytes, so that the first loans need not
// allocate it.
myelin_code myelin_publisher_reserve(struct myelin_publisher *publisher,
                                     uint32_t count,
                                     size_t bytes);

// Its endpoint id, as in events, samples and graphs. The upper 40 bits are the id of its node.
myelin_code myelin_publisher_endpoint(struct myelin_publisher *publisher, uint64_t *endpoint);

// How many subscribers it is matched with now.
myelin_code myelin_publisher_matched(struct myelin_publisher *publisher, size_t *subscribers);

// Waits until it is matched with so many subscribers, for at most `limit_ns`; MYELIN_NOTHING if
// the time is over.
myelin_code myelin_publisher_wait_for_match(struct myelin_publisher *publisher,
                                            size_t subscribers,
                                            uint64_t limit_ns);

// Tells subscribers with a liveliness lease that it is alive, without publishing.
myelin_code myelin_publisher_assert_liveliness(struct myelin_publisher *publisher);

// Waits until other hosts and DDS programs have acknowledged all samples published for them, for
// at most `limit_ns`; MYELIN_NOTHING if the time is over. It does not wait for subscribers on this
// host, which can take a sample as soon as it is published. A best-effort publisher gets no
// acknowledgements.
myelin_code myelin_publisher_wait_for_acknowledgements(struct myelin_publisher *publisher,
                                                       uint64_t limit_ns);

// The next event of its matches; MYELIN_NOTHING if there is none.
myelin_code myelin_publisher_event(struct myelin_publisher *publisher, struct myelin_event *event);

// Triggers the guard condition from now on whenever there is an event to take, and once now if there are
// events already. A second call replaces the first.
myelin_code myelin_publisher_on_event(struct myelin_publisher *publisher,
                                      struct myelin_guard_condition *guard);

// Releases a sample: its memory may be used again. `data` becomes NULL; a second time gives
// MYELIN_ERROR_HANDLE. Do not release a sample that a callback is lent. Any thread.
myelin_code myelin_sample_release(struct myelin_sample *sample);

// Makes another reference to the same sample, to be released, too. A callback keeps its lent
// sample this way. Any thread that has the sample.
myelin_code myelin_sample_clone(const struct myelin_sample *sample, struct myelin_sample *clone);

// Serves a service with requests and replies of these types; NULL is any number of bytes. Their
// alignment is at most 16.
myelin_code myelin_server_open(struct myelin_node *node,
                               const char *name,
                               const struct myelin_payload *request,
                               const struct myelin_payload *reply,
                               struct myelin_server **server);

// Closes it. The program can still reply to requests that it holds.
myelin_code myelin_server_close(struct myelin_server *server);

// Takes the next request; waits for it for at most `limit_ns` (0: not at all, MYELIN_FOREVER: no
// limit). MYELIN_NOTHING if the time is over, or if the wait was interrupted.
myelin_code myelin_server_receive(struct myelin_server *server,
                                  uint64_t limit_ns,
                                  struct myelin_request *request);

// Ends the running wait, or else the next one. Any thread, and a signal handler.
myelin_code myelin_server_interrupt(struct myelin_server *server);

// How it waits: `enum myelin_wait`.
myelin_code myelin_server_set_wait(struct myelin_server *server, int32_t wait);

// How many clients there are now.
myelin_code myelin_server_clients(struct myelin_server *server, size_t *clients);

// The next event of its matches with clients; MYELIN_NOTHING if there is none.
myelin_code myelin_server_event(struct myelin_server *server, struct myelin_event *event);

// Calls `call` with each request from now on, until the callback is closed: like
// `myelin_subscriber_on_sample`. The server is used up.
myelin_code myelin_server_on_request(struct myelin_server *server,
                                     myelin_on_request call,
                                     void *context,
                                     void (*release)(void *context),
                                     struct myelin_callback **callback);

// Replies with a copy of `bytes` bytes, a whole payload of the reply's type. A second reply is an error.
myelin_code myelin_request_reply(const struct myelin_request *request,
                                 const void *data,
                                 size_t bytes);

// Lends memory for a reply of `bytes` bytes. `myelin_request_send` sends it; it is discarded with
// the request.
myelin_code myelin_request_loan(const struct myelin_request *request,
                                size_t bytes,
                                struct myelin_loan *loan);

// Replies with a loan of the request, without a copy.
myelin_code myelin_request_send(const struct myelin_request *request, struct myelin_loan *loan);

// Releases a request, with or without a reply. `data` becomes NULL; a second time gives
// MYELIN_ERROR_HANDLE.
myelin_code myelin_request_release(struct myelin_request *request);

// Makes a subscriber of a topic. `options` may be NULL. On return it is matched with the
// publishers that exist on this host, with the same exception as for a publisher.
myelin_code myelin_subscriber_open(struct myelin_topic *topic,
                                   const struct myelin_subscriber_options *options,
                                   struct myelin_subscriber **subscriber);

// Closes it. Samples that are held stay valid.
myelin_code myelin_subscriber_close(struct myelin_subscriber *subscriber);

// The next sample, if there is one; never waits. MYELIN_NOTHING if there is none; `sample` is
// unchanged then.
myelin_code myelin_subscriber_take(struct myelin_subscriber *subscriber,
                                   struct myelin_sample *sample);

// Takes the next sample; waits for it for at most `limit_ns` (MYELIN_FOREVER: no limit).
// MYELIN_NOTHING if the time is over, or if the wait was interrupted, or, with a deadline or
// liveliness, if a publisher has fallen silent.
myelin_code myelin_subscriber_receive(struct myelin_subscriber *subscriber,
                                      uint64_t limit_ns,
                                      struct myelin_sample *sample);

// Waits until there is a sample to take, like `myelin_subscriber_receive`, without taking it.
myelin_code myelin_subscriber_wait(struct myelin_subscriber *subscriber, uint64_t limit_ns);

// Ends the running wait, or else the next one. Any thread, and a signal handler.
myelin_code myelin_subscriber_interrupt(struct myelin_subscriber *subscriber);

// A descriptor for your own epoll: readable when there may be a sample or an event. Take until
// nothing is left, then wait for it again; level- and edge-triggered both work. The subscriber
// owns it: do not close it. The subscriber must be made with `descriptor` set.
myelin_code myelin_subscriber_descriptor(struct myelin_subscriber *subscriber, int *descriptor);

// MYELIN_OK if there are published samples that have not been taken, otherwise MYELIN_NOTHING. A
// sample in new memory cannot be taken before a thread of the node has mapped that memory. Until
// then `myelin_subscriber_take` returns MYELIN_NOTHING, a wait goes on, and this returns MYELIN_OK.
// If you learn of a publisher's end by other means than an event, such as the end of its process,
// take until nothing is unread.
myelin_code myelin_subscriber_has_unread(struct myelin_subscriber *subscriber);

// How many samples were lost so far because it was further behind than its depth.
myelin_code myelin_subscriber_lost(struct myelin_subscriber *subscriber, uint64_t *samples);

// Its endpoint id, as in events, samples and graphs. The upper 40 bits are the id of its node.
myelin_code myelin_subscriber_endpoint(struct myelin_subscriber *subscriber, uint64_t *endpoint);

// How many publishers it is matched with now.
myelin_code myelin_subscriber_matched(struct myelin_subscriber *subscriber, size_t *publishers);

// Waits until it is matched with so many publishers, for at most `limit_ns`; MYELIN_NOTHING if the
// time is over.
myelin_code myelin_subscriber_wait_for_match(struct myelin_subscriber *subscriber,
                                             size_t publishers,
                                             uint64_t limit_ns);

// The next event of its matches; MYELIN_NOTHING if there is none.
myelin_code myelin_subscriber_event(struct myelin_subscriber *subscriber,
                                    struct myelin_event *event);

// Triggers the guard condition from now on whenever there is an event to take, and once now if there are
// events already. A second call replaces the first.
myelin_code myelin_subscriber_on_event(struct myelin_subscriber *subscriber,
                                       struct myelin_guard_condition *guard);

// Calls `call` with each sample from now on, until the callback is closed. The subscriber is used
// up: its handle is closed, unless MYELIN_ERROR_HANDLE or MYELIN_ERROR_SETTING is returned. For
// samples of this process it runs inside the publish, in the publisher's thread; for others in a
// thread of its own; never twice at once. `release`, if it is not NULL, is called once with
// `context`, after the last call; also if this fails.
myelin_code myelin_subscriber_on_sample(struct myelin_subscriber *subscriber,
                                        myelin_on_sample call,
                                        void *context,
                                        void (*release)(void *context),
                                        struct myelin_callback **callback);

// Names a topic and its payload; if `payload` is NULL, any number of bytes. `options` may be NULL.
// Nothing is checked with other programs before a publisher or subscriber is made.
myelin_code myelin_topic_open(struct myelin_node *node,
                              const char *name,
                              const struct myelin_payload *payload,
                              const struct myelin_topic_options *options,
                              struct myelin_topic **topic);

// Closes a topic's handle. Objects made from it go on.
myelin_code myelin_topic_close(struct myelin_topic *topic);

// Makes a wait set of a node, which can have at most 1,024.
myelin_code myelin_wait_set_open(struct myelin_node *node, struct myelin_wait_set **set);

// Closes it; the watched objects go on. Other threads may be inside calls with it: a wait ends
// with MYELIN_ERROR_CLOSED.
myelin_code myelin_wait_set_close(struct myelin_wait_set *set);

// Watches a subscriber of the set's node until it is removed or closed: `key`, chosen by the
// program, is reported while there is a sample to take.
myelin_code myelin_wait_set_add(struct myelin_wait_set *set,
                                struct myelin_subscriber *subscriber,
                                uint64_t key);

// Like `myelin_wait_set_add`, for a server: `key` is reported while there is a request to take.
myelin_code myelin_wait_set_add_server(struct myelin_wait_set *set,
                                       struct myelin_server *server,
                                       uint64_t key);

// Makes a guard condition: triggering it reports `key`. Close the guard condition when you are done.
myelin_code myelin_wait_set_guard_condition(struct myelin_wait_set *set,
                                            uint64_t key,
                                            struct myelin_guard_condition **guard);

// Ends the running wait, or else the next one. Any thread, and a signal handler.
myelin_code myelin_guard_condition_trigger(struct myelin_guard_condition *guard);

// Closes a guard condition.
myelin_code myelin_guard_condition_close(struct myelin_guard_condition *guard);

// Reports `key` once every `period_ns`, the first time one period from now.
myelin_code myelin_wait_set_timer(struct myelin_wait_set *set, uint64_t period_ns, uint64_t key);

// Stops watching the member with this key. MYELIN_NOTHING if there is none.
myelin_code myelin_wait_set_remove(struct myelin_wait_set *set, uint64_t key);

// Waits until something is ready, for at most `limit_ns` (MYELIN_FOREVER: no limit), and writes
// the keys of the ready members, at most `capacity`, and their number. The next wait reports the
// others. MYELIN_NOTHING if nothing is ready. A subscriber with samples left is ready again. One
// thread at a time waits: another one gets MYELIN_ERROR_BUSY.
myelin_code myelin_wait_set_wait(struct myelin_wait_set *set,
                                 uint64_t limit_ns,
                                 uint64_t *keys,
                                 size_t capacity,
                                 size_t *count);

// One descriptor for your own epoll, for everything that the set watches. The program owns it:
// close it. When it is readable, wait with a limit of 0 until nothing is reported.
myelin_code myelin_wait_set_descriptor(struct myelin_wait_set *set, int *descriptor);

// How it waits: `enum myelin_wait`.
myelin_code myelin_wait_set_set_wait(struct myelin_wait_set *set, int32_t wait);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MYELIN_H */

#ifndef __cplusplus
/* A type, by kind: MYELIN_TYPE(MYELIN_F64, 0) is a double, MYELIN_TYPE(MYELIN_F64, 3) is double[3]. */
#define MYELIN_TYPE(kind, ...) {kind, NULL, {__VA_ARGS__}}
/* A type that is a struct: the address of its description, then 0 or lengths. */
#define MYELIN_TYPE_STRUCT(description, ...) {MYELIN_STRUCT, description, {__VA_ARGS__}}
/* The payload of a topic: MYELIN_PAYLOAD(MYELIN_SLICE, MYELIN_TYPE(MYELIN_F64, 2)). */
#define MYELIN_PAYLOAD(form_, ...) \
  {.size = sizeof(struct myelin_payload), .form = form_, .type = __VA_ARGS__}
/* A header and elements, both structs: the addresses of their descriptions. */
#define MYELIN_PAYLOAD_STRUCTS(header_, element_) \
  {.size = sizeof(struct myelin_payload), .form = MYELIN_HEADER_SLICE, \
   .type = {MYELIN_STRUCT, element_, {0}}, .header = {MYELIN_STRUCT, header_, {0}}}

/* A header that is a struct, and elements of any type: the address of the header's description, then the type.
 * An image: MYELIN_PAYLOAD_HEADER(&frame, MYELIN_TYPE(MYELIN_U8, 0)). */
#define MYELIN_PAYLOAD_HEADER(header_, ...) \
  {.size = sizeof(struct myelin_payload), .form = MYELIN_HEADER_SLICE, .type = __VA_ARGS__, \
   .header = {MYELIN_STRUCT, header_, {0}}}
/* Where the elements E begin behind a header H, in bytes. */
#define MYELIN_SLICE_OFFSET(H, E) ((sizeof(H) + _Alignof(E) - 1) / _Alignof(E) * _Alignof(E))

/* Describes a struct T from an array of its fields:
 *
 *     struct imu { uint64_t stamp_ns; double acceleration[3]; float temperature; uint8_t _pad[4]; };
 *     static const struct myelin_field imu_fields[] = {
 *         MYELIN_FIELD(struct imu, stamp_ns), MYELIN_FIELD(struct imu, acceleration),
 *         MYELIN_FIELD(struct imu, temperature), MYELIN_FIELD(struct imu, _pad)};
 *     static const struct myelin_struct imu = MYELIN_STRUCT_OF(struct imu, "Imu", imu_fields);
 */
#define MYELIN_STRUCT_OF(T, name, fields) \
  {sizeof(struct myelin_struct), name, sizeof(T), _Alignof(T), fields, \
   sizeof(fields) / sizeof(*(fields)), sizeof(struct myelin_field)}
/* A number, or an array of numbers of one dimension. char is u8. */
#define MYELIN_FIELD(T, member) \
  {#member, offsetof(T, member), \
   {MYELIN_KIND_OF(((T *)0)->member), NULL, {MYELIN_LENGTH_OF(((T *)0)->member)}}}
/* An array of more dimensions, or a number of another kind: MYELIN_FIELD_OF(T, a, MYELIN_F64, 3, 3). */
#define MYELIN_FIELD_OF(T, member, kind, ...) \
  {#member, offsetof(T, member), {kind, NULL, {__VA_ARGS__}}}
/* A struct, or an array of structs: the address of its description, then 0 or lengths. */
#define MYELIN_FIELD_STRUCT(T, member, description, ...) \
  {#member, offsetof(T, member), {MYELIN_STRUCT, description, {__VA_ARGS__}}}

#define MYELIN_NUMBERS_(of, to) \
  of(bool, MYELIN_BOOL, to) of(char, MYELIN_U8, to) of(signed char, MYELIN_I8, to) \
  of(unsigned char, MYELIN_U8, to) of(short, MYELIN_I16, to) of(unsigned short, MYELIN_U16, to) \
  of(int, MYELIN_I32, to) of(unsigned, MYELIN_U32, to) of(long, MYELIN_I64, to) \
  of(unsigned long, MYELIN_U64, to) of(long long, MYELIN_I64, to) \
  of(unsigned long long, MYELIN_U64, to) of(float, MYELIN_F32, to)
#define MYELIN_KIND_AND_(T, kind, to) T: kind, T *: kind,
#define MYELIN_BYTES_AND_(T, kind, to) T: 0, T *: sizeof(to) / (sizeof(T)),
#define MYELIN_KIND_OF(value) \
  _Generic((value), MYELIN_NUMBERS_(MYELIN_KIND_AND_, 0) double: MYELIN_F64, double *: MYELIN_F64)
#define MYELIN_LENGTH_OF(value) \
  _Generic((value), MYELIN_NUMBERS_(MYELIN_BYTES_AND_, value) double: 0, \
           double *: sizeof(value) / (sizeof(double)))
#endif
