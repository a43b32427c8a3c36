/* The kit of `myelin bench` for drivers written in C or C++.
 *
 * A driver is an executable named `myelin-driver-<name>`. It supplies a table of its systems and a
 * table of functions that open, publish, wait, take and close; the kit supplies clock, pacing,
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
 * MYELIN_DRIVERS (a list separated by colons) and `myelin bench list systems` shows it.
 *
 * Times are nanoseconds on CLOCK_MONOTONIC. Functions return a negative number for an error, after
 * myelin_bench_error() has said which. Tables and their texts live as long as the program; what the
 * kit passes to a function is valid during the call.
 *
 * Threads: all calls come from one thread, except that in one process each subscriber has a thread of
 * its own for wait, take and release, and that a driver calls what listen() was given in whatever
 * thread it likes.
 *
 * Versions: members are only ever added, at the end of a structure, and 0 in them means what was
 * before. A driver compiled with an older header of this series works with a newer kit, which knows
 * by `struct_size` what the driver has. What came when: "since".
 */
#ifndef MYELIN_BENCH_KIT_H
#define MYELIN_BENCH_KIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MYELIN_BENCH_ABI 7u

/* The first member of a table: MYELIN_BENCH_SIZE(system) is that of struct myelin_bench_system. */
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
  MYELIN_BENCH_WAIT_CALLBACK = 4    /* since 6: it does not wait, a function is called; see listen */
};
enum {
  MYELIN_BENCH_TRANSPORT_LOOPBACK = 0,
  MYELIN_BENCH_TRANSPORT_SHARED_MEMORY = 1,
  MYELIN_BENCH_TRANSPORT_KERNEL = 2,
  MYELIN_BENCH_TRANSPORT_PROCESS = 3 /* since 6: memory of one process */
};

/* Workloads; those of a system are or-ed together. */
enum {
  MYELIN_BENCH_ROUNDTRIP = 1,
  MYELIN_BENCH_STREAM = 2,
  MYELIN_BENCH_IMAGE = 4,
  MYELIN_BENCH_FLOOD = 8,
  MYELIN_BENCH_STARTUP = 16,
  MYELIN_BENCH_PUBLISH = 32 /* since 6: needs subscribe */
};

/* What a system offers of streams; may be or-ed together. */
enum { MYELIN_BENCH_BEST_EFFORT = 1, MYELIN_BENCH_RELIABLE = 2 };

/* One middleware with one configuration. */
struct myelin_bench_system {
  size_t struct_size;         /* MYELIN_BENCH_SIZE(system); the same in all entries of a table */
  const char *name;           /* "driver.configuration" */
  const char *about;          /* one line */
  const char *version;        /* of the middleware; may be NULL */
  int wait;                   /* how its subscriber waits: MYELIN_BENCH_WAIT_* */
  int transport;              /* what it travels over: MYELIN_BENCH_TRANSPORT_* */
  int loans;                  /* whether messages are written into loaned memory */
  uint32_t workloads;         /* that open() knows: MYELIN_BENCH_ROUNDTRIP, ...; 0: round trips */
  const char *missing;        /* why it cannot run here and what to install; NULL if it can */
  uint64_t payload_bytes_max; /* 0: no limit */
  /* Of streams. */
  int reliability;            /* MYELIN_BENCH_BEST_EFFORT, MYELIN_BENCH_RELIABLE or both; 0: the first */
  uint32_t publishers_max;    /* of a topic, each a process; 0: one; UINT32_MAX: no limit */
  uint32_t subscribers_max;   /* as publishers_max */
  uint32_t topics_max;        /* between two processes; as publishers_max */
  int across_hosts;           /* whether the two processes may be on two hosts */
  /* Since 6. */
  int one_process;            /* ping has both ends, and there is no pong; needs subscribe */
  int daemon;                 /* whether it needs a daemon; see start_daemon */
  /* Since 7. */
  uint64_t loan_bytes_min;    /* messages of less are published by copy, though it loans */
};

/* What a run asks for. */
struct myelin_bench_prepare {
  size_t struct_size;        /* of the kit's */
  const char *system;        /* which of the driver's systems */
  const char *run;           /* unique on this host; letters, digits and '-': names topics */
  const char *directory;     /* where configuration files may be written */
  const char *options_json;  /* the scenario's [options.<driver>] table */
  int is_ping;               /* 1: ping, 0: pong */
  uint32_t domain;           /* separates this run from other users of the middleware */
  uint64_t payload_bytes;    /* beyond the 8 of the sequence number */
  uint64_t message_bytes;    /* payload_bytes + 8: what publish and take move */
  uint64_t match_timeout_ns; /* how long open() may wait for the other side */
  uint64_t seed;
  int one_way;               /* 1: a stream: ping publishes, pong waits and takes, and neither does
                                the other */
  /* Of streams; within what the system offers. */
  int reliable;              /* 0: publishing never waits for pong; 1: it does, and nothing is lost */
  uint32_t depth;            /* messages of a topic kept for a pong that lags */
  uint32_t publishers;       /* pings, each a process: pong matches so many */
  uint32_t subscribers;      /* pongs, each a process: ping matches so many; see subscribe */
  uint32_t index;            /* which of them this is, from 0 */
  uint32_t topics;           /* from ping to pong; see select */
  /* The way to the other process, if that is on another host; else NULL and 0. */
  const char *interface;     /* of this host */
  const char *own;           /* this host's address there, IPv4 or IPv6 */
  const char *peer;          /* the other host's */
  uint16_t port;             /* the first of 15 that are this run's on both hosts, TCP and UDP */
  /* Since 6. */
  uint32_t workload;         /* one of MYELIN_BENCH_ROUNDTRIP, ... */
  const char *file_prefix;   /* of names of files in `directory`: across hosts each role has its own */
  const void *kit;           /* the kit's own, for functions of a driver that are in Rust */
};

/* The sequence number, little-endian in the first 8 bytes, of what ping publishes last. */
#define MYELIN_BENCH_GOODBYE UINT64_MAX

/* What a subscriber calls with each message, whose bytes are valid during the call. */
typedef void (*myelin_bench_call)(void *context, const void *message, size_t bytes);

/* The functions of a link: both directions of one role, or the one of a stream. */
struct myelin_bench_link {
  size_t struct_size; /* MYELIN_BENCH_SIZE(link) */
  /* Opens everything and returns 0 when all directions there are have matched. */
  int (*open)(const struct myelin_bench_prepare *prepare, void **link);
  /* Memory for exactly `bytes`, the caller's to write until publish_loan. NULL: no loans. */
  int (*loan)(void *link, size_t bytes, void **memory);
  /* Publishes the memory loaned last. NULL: no loans. */
  int (*publish_loan)(void *link);
  /* Publishes a copy. */
  int (*publish)(void *link, const void *message, size_t bytes);
  /* Waits for something to take: 1 there may be, 0 the clock reads until_ns. NULL: take waits. */
  int (*wait)(void *link, uint64_t until_ns);
  /* The next message: 1 and its bytes, valid until release; 0 none (until until_ns, if take
   * waits). */
  int (*take)(void *link, uint64_t until_ns, const void **message, size_t *bytes);
  /* Gives back the sample taken last. May be NULL. */
  void (*release)(void *link);
  /* Closes everything and frees the link. */
  void (*close)(void *link);
  /* What is loaned or published next goes to topic `topic`. Called only if there are several; the
   * first is 0. NULL: there is only one. */
  void (*select)(void *link, uint32_t topic);

  /* Since 6; each may be NULL. */

  /* Opens subscriber `index` of this process, below prepare->subscribers, on the topic published to.
   * Asked in one process, where ping has them, and of pong in a publish run: there publishing waits
   * for nobody, and take(0) returns at once. wait, take, release and listen are then called with it
   * in place of the link. */
  int (*subscribe)(void *link, uint32_t index, void **subscriber);
  /* Closes a subscriber, after unlisten; the link is still there. */
  void (*unsubscribe)(void *subscriber);
  /* Of a system whose wait is MYELIN_BENCH_WAIT_CALLBACK: from now on calls `call` with each message,
   * never twice at once. The kit asks in one process of its subscribers, and between two of pong's
   * link, which in a round trip it has answer within the call; ping takes. */
  int (*listen)(void *subscriber, myelin_bench_call call, void *context);
  /* When it returns, the function is not running and will not be called again. */
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

  /* Whether a run makes sense; asked before anything runs. System, options, payload, reliability
   * and a missing middleware the kit has checked. */
  int (*check)(const struct myelin_bench_prepare *prepare);
  /* Completes `version` and `missing` of a copy of the table's entry, where they can only be told
   * when the driver runs. Asked when the systems are listed. */
  void (*probe)(struct myelin_bench_system *system);
  /* Remarks for the report, one a line, on what has been opened; valid until the next call. */
  const char *(*notes)(const struct myelin_bench_prepare *prepare);
  /* As notes, on what has happened; asked when the last message has come. */
  const char *(*notes_at_end)(void);
  /* Starts the daemon that the system needs, and returns when it answers. */
  int (*start_daemon)(const struct myelin_bench_prepare *prepare, void **daemon);
  /* Its process ids, of which there are no more than `pids_max`; returns how many. */
  size_t (*daemon_pids)(void *daemon, uint32_t *pids, size_t pids_max);
  /* Whether it still runs; the error says how it has ended. */
  int (*check_daemon)(void *daemon);
  /* Stops it, removes what it has left behind, and frees it. */
  int (*stop_daemon)(void *daemon);
  /* Removes what killed processes of this driver or its daemon have left behind, and nothing that the
   * living use. Asked before a session and after a run that failed. */
  int (*clean)(void);
};

/* The whole main of a driver; returns the exit status. */
int myelin_bench_main(const struct myelin_bench_driver *driver);

/* Sets the text of the error about to be returned; `remedy` (may be NULL) says what to do. */
void myelin_bench_error(const char *message, const char *remedy);

/* Since 6. The same, blamed on `key` of the options. */
void myelin_bench_option_error(const char *key, const char *message, const char *remedy);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t myelin_bench_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_BENCH_KIT_H */
