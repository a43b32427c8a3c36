/* The kit of `myelin bench` for drivers written in C or C++.
 *
 * A driver is an executable named `myelin-driver-<name>`. It supplies a table of its systems and a
 * table of functions that open, publish, wait, take and close. The kit supplies clock, pacing,
 * recording, the line protocol and main:
 *
 *     static const struct myelin_bench_system systems[] = {{MYELIN_BENCH_SIZE(system), ...}};
 *     static const struct myelin_bench_link link = {MYELIN_BENCH_SIZE(link), ...};
 *     static const struct myelin_bench_driver driver = {
 *       .abi = MYELIN_BENCH_ABI, MYELIN_BENCH_SIZE(driver),
 *       .systems = systems, .system_count = 1, .link = &link };
 *     int main(void) { return myelin_bench_main(&driver); }
 *
 * Link with libmyelin_bench_kit.a, -lpthread -ldl -lm. Put the executable into a folder named in
 * MYELIN_DRIVERS (a list separated by colons), and `myelin bench list systems` shows it.
 *
 * Times are nanoseconds on CLOCK_MONOTONIC. A function that fails calls myelin_bench_error() and
 * returns a negative number. Tables and their texts live as long as the program; the arguments of a
 * function are valid during the call.
 *
 * Threads: all calls come from one thread, with two exceptions. In one process each subscriber has
 * its own thread for wait, take and release. And a driver calls the function of listen() in any
 * thread.
 *
 * Versions: members are only added, at the end of a structure, and 0 means the behaviour before. A
 * driver compiled with an older header of this series works with a newer kit, which knows the
 * driver's members by `struct_size`. "Since" marks the version of a member.
 */
#ifndef MYELIN_BENCH_KIT_H
#define MYELIN_BENCH_KIT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MYELIN_BENCH_ABI 10u

/* The first member of a table: MYELIN_BENCH_SIZE(system) is the size of struct myelin_bench_system.
 */
#ifdef __cplusplus
#define MYELIN_BENCH_SIZE(table) sizeof(struct myelin_bench_##table)
#else
#define MYELIN_BENCH_SIZE(table) .struct_size = sizeof(struct myelin_bench_##table)
#endif

enum {
  MYELIN_BENCH_WAIT_POLL = 0,
  MYELIN_BENCH_WAIT_BLOCK = 1,
  MYELIN_BENCH_WAIT_ADAPTIVE = 2,
  MYELIN_BENCH_WAIT_PREDICTIVE = 3, /* since 6 */
  MYELIN_BENCH_WAIT_CALLBACK = 4    /* since 6: calls a function instead of waiting; see listen */
};
enum {
  MYELIN_BENCH_TRANSPORT_LOOPBACK = 0,
  MYELIN_BENCH_TRANSPORT_SHARED_MEMORY = 1,
  MYELIN_BENCH_TRANSPORT_KERNEL = 2,
  MYELIN_BENCH_TRANSPORT_PROCESS = 3 /* since 6: within one process */
};

/* Workloads; a system combines several by bitwise or. */
enum {
  MYELIN_BENCH_ROUNDTRIP = 1,
  MYELIN_BENCH_STREAM = 2,
  MYELIN_BENCH_IMAGE = 4,
  MYELIN_BENCH_FLOOD = 8,
  MYELIN_BENCH_STARTUP = 16,
  MYELIN_BENCH_PUBLISH = 32, /* since 6: needs subscribe */
  MYELIN_BENCH_REPLAY = 64   /* since 8: a stream whose messages have different sizes, at most
                                message_bytes; `loan` and `publish` get the size of each */
};

/* What streams of a system offer; may be combined by bitwise or. */
enum { MYELIN_BENCH_BEST_EFFORT = 1, MYELIN_BENCH_RELIABLE = 2 };

/* One middleware with one configuration. */
struct myelin_bench_system {
  size_t struct_size;         /* MYELIN_BENCH_SIZE(system); the same in all entries of a table */
  const char *name;           /* "driver.configuration" */
  const char *about;          /* one line */
  const char *version;        /* version of the middleware; may be NULL */
  int wait;                   /* how its subscriber waits: MYELIN_BENCH_WAIT_* */
  int transport;              /* how messages travel: MYELIN_BENCH_TRANSPORT_* */
  int loans;                  /* whether publishers write into loaned memory */
  uint32_t workloads;         /* the ones of open(): MYELIN_BENCH_ROUNDTRIP, ...; 0: round trips */
  const char *missing;        /* why it cannot run here and what to install; NULL if it can */
  uint64_t payload_bytes_max; /* 0: no limit */
  /* For streams. */
  int reliability;            /* MYELIN_BENCH_BEST_EFFORT, MYELIN_BENCH_RELIABLE or both; 0: the first */
  uint32_t publishers_max;    /* limit per topic, one process each; 0: one; UINT32_MAX: no limit */
  uint32_t subscribers_max;   /* see publishers_max */
  uint32_t topics_max;        /* limit between two processes; see publishers_max */
  int across_hosts;           /* whether its two processes may be on two hosts */
  /* Since 6. */
  int one_process;            /* ping has both ends, and there is no pong; needs subscribe */
  int daemon;                 /* whether it needs a daemon; see start_daemon */
  /* Since 7. */
  uint64_t loan_bytes_min;    /* smaller messages are published by copy, even with loans */
  /* Since 9. */
  uint32_t depth_max;         /* limit of a stream's depth; 0: no limit */
  /* Since 10. */
  int secure;                 /* whether it authenticates and encrypts; needs prepare->enclave */
};

/* The order for a run. The kit has checked it against the system: options, payload, reliability, depth and
 * whether the middleware is missing. In a round trip `reliable` and `index` are 0, and `publishers`,
 * `subscribers` and `topics` are 1. */
struct myelin_bench_prepare {
  size_t struct_size;        /* size of the kit's structure */
  const char *system;        /* name of the system */
  const char *run;           /* unique on this host, for topics; letters, digits and '-' */
  const char *directory;     /* for configuration files */
  const char *options_json;  /* the scenario's [options.<driver>] table */
  int is_ping;               /* 1: ping, 0: pong */
  uint32_t domain;           /* separates this run from other users of the middleware */
  uint64_t payload_bytes;    /* in addition to the 8 of the sequence number */
  uint64_t message_bytes;    /* payload_bytes + 8: what publish and take move */
  uint64_t match_timeout_ns; /* how long open() may wait for the other side */
  uint64_t seed;
  int one_way;               /* 1: a stream: ping only publishes, pong only waits and takes */
  /* For streams; within the limits of the system. */
  int reliable;              /* 0: publishing never waits for pong; 1: it waits; nothing is lost */
  uint32_t depth;            /* messages of a topic kept for a slow pong */
  uint32_t publishers;       /* pings, one process each: pong waits for all of them to match */
  uint32_t subscribers;      /* pongs, one process each: ping waits for all; see subscribe */
  uint32_t index;            /* index among the pings or pongs, from 0 */
  uint32_t topics;           /* number of topics from ping to pong; see select */
  /* The network to the other process, if that is on another host; else NULL and 0. */
  const char *interface;     /* interface of this host */
  const char *own;           /* this host's address there, IPv4 or IPv6 */
  const char *peer;          /* the other host's address */
  uint16_t port;             /* first of 15 TCP and UDP ports of this run on both hosts */
  /* Since 6. */
  uint32_t workload;         /* one of MYELIN_BENCH_ROUNDTRIP, ... */
  const char *file_prefix;   /* for names in `directory`: across hosts each role has its own */
  const void *kit;           /* internal data of the kit, for functions of a driver in Rust */
  /* Since 9. */
  int publishes;             /* whether this role publishes: always in a round trip, else ping */
  int subscribes;            /* whether this role takes: always in a round trip, else pong */
  uint32_t others;           /* processes of the other side, which open() must match */
  uint64_t match_until_ns;   /* when open() must have matched them, on CLOCK_MONOTONIC */
  /* Since 10. */
  const char *enclave;       /* for a secure system: the folder of this process's identity, with the
                                files of an enclave of SROS 2; else NULL */
};

/* The sequence number of ping's last message, little-endian in the first 8 bytes. */
#define MYELIN_BENCH_END_OF_STREAM UINT64_MAX

/* Called by a subscriber with each message; its bytes are valid during the call. */
typedef void (*myelin_bench_call)(void *context, const void *message, size_t bytes);

/* The functions of a link: both directions of one role, or the single direction of a stream. */
struct myelin_bench_link {
  size_t struct_size; /* MYELIN_BENCH_SIZE(link) */
  /* Opens everything; returns 0 when all directions have matched. */
  int (*open)(const struct myelin_bench_prepare *prepare, void **link);
  /* Memory of exactly `bytes`, for the caller to write until publish_loan. NULL: no loans. */
  int (*loan)(void *link, size_t bytes, void **memory);
  /* Publishes the last loan. NULL: no loans. */
  int (*publish_loan)(void *link);
  /* Publishes a copy. */
  int (*publish)(void *link, const void *message, size_t bytes);
  /* Waits for a message. 1: there may be one; 0: the clock reads until_ns. NULL: take waits. */
  int (*wait)(void *link, uint64_t until_ns);
  /* The next message. 1: its bytes are valid until release; 0: there is none (until until_ns, if
   * take waits). */
  int (*take)(void *link, uint64_t until_ns, const void **message, size_t *bytes);
  /* Releases the last taken sample. May be NULL. */
  void (*release)(void *link);
  /* Closes everything and frees the link. */
  void (*close)(void *link);
  /* Selects the topic of the next loan or publish. Called only if there are several; the first is
   * 0. NULL: there is only one. */
  void (*select)(void *link, uint32_t topic);

  /* Since 6; each may be NULL. */

  /* Opens subscriber `index` of this process, below prepare->subscribers, on the published topic.
   * Called in one process, where the subscribers are ping's, and for pong of a publish run. In a
   * publish run publishing never waits, and take(0) returns at once. wait, take, release and listen
   * get the subscriber instead of the link. */
  int (*subscribe)(void *link, uint32_t index, void **subscriber);
  /* Closes a subscriber, after unlisten; the link is still open. */
  void (*unsubscribe)(void *subscriber);
  /* For a system with MYELIN_BENCH_WAIT_CALLBACK: from now on calls `call` with each message; calls
   * never overlap. In one process the kit calls this for the subscribers. With two processes it
   * calls this for pong's link, which answers round trips within the call; ping takes. */
  int (*listen)(void *subscriber, myelin_bench_call call, void *context);
  /* After it has returned, the function is not running and will not be called again. */
  void (*unlisten)(void *subscriber);
};

struct myelin_bench_driver {
  uint32_t abi;       /* MYELIN_BENCH_ABI */
  size_t struct_size; /* MYELIN_BENCH_SIZE(driver) */
  const struct myelin_bench_system *systems;
  size_t system_count;
  const struct myelin_bench_link *link; /* NULL if all systems are missing */
  const char *options;                  /* keys of the options, separated by spaces; NULL: none */

  /* Since 6; each may be NULL. */

  /* Checks what the kit cannot, before anything starts and before open(). */
  int (*check)(const struct myelin_bench_prepare *prepare);
  /* Completes `version` and `missing` of a copy of the table's entry, if they are only known when
   * the driver runs. Called when systems are listed. */
  void (*probe)(struct myelin_bench_system *system);
  /* Remarks for the report on the opened link, one per line; valid until the next call. */
  const char *(*notes)(const struct myelin_bench_prepare *prepare);
  /* Like notes, on what happened during the run; called after the last message. */
  const char *(*notes_at_end)(void);
  /* Starts the daemon of the system, and returns when it answers. */
  int (*start_daemon)(const struct myelin_bench_prepare *prepare, void **daemon);
  /* Ids of its processes, at most `pids_max`; returns their number. */
  size_t (*daemon_pids)(void *daemon, uint32_t *pids, size_t pids_max);
  /* Checks that it still runs; the error says how it ended. */
  int (*check_daemon)(void *daemon);
  /* Stops it, removes what it has left behind, and frees it. */
  int (*stop_daemon)(void *daemon);
  /* Removes what killed processes of this driver or its daemon have left behind, and nothing that
   * live processes use. Called before a session and after a failed run. */
  int (*clean)(void);
};

/* The whole main of a driver; returns the exit status. */
int myelin_bench_main(const struct myelin_bench_driver *driver);

/* Sets the text of the error to return; `remedy` (may be NULL) says what to do. */
void myelin_bench_error(const char *message, const char *remedy);

/* Since 6. The same, and names `key` of the options as the cause. */
void myelin_bench_option_error(const char *key, const char *message, const char *remedy);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t myelin_bench_now_ns(void);

/* Nanoseconds until `until_ns`; 0 if it has passed. */
static inline uint64_t myelin_bench_left_ns(uint64_t until_ns)
{
  const uint64_t now_ns = myelin_bench_now_ns();
  return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* Sets the text of the error, `remedy` (may be NULL) first and then as printf does. Returns -1. */
#ifdef __GNUC__
__attribute__((cold, unused, format(printf, 2, 3)))
#endif
static int myelin_bench_fail(const char *remedy, const char *format, ...)
{
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  myelin_bench_error(text, remedy);
  return -1;
}

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_BENCH_KIT_H */
