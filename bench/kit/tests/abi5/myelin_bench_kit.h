/* The kit's header as it was at its ABI 5, the first of its series: a driver compiled with it works
 * with the kit of today. */
#ifndef MYELIN_BENCH_KIT_H
#define MYELIN_BENCH_KIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MYELIN_BENCH_ABI 5u

/* The first member of a table: MYELIN_BENCH_SIZE(system) is that of struct myelin_bench_system. */
#ifdef __cplusplus
#define MYELIN_BENCH_SIZE(table) sizeof(struct myelin_bench_##table)
#else
#define MYELIN_BENCH_SIZE(table) .struct_size = sizeof(struct myelin_bench_##table)
#endif

enum {
  MYELIN_BENCH_WAIT_POLL = 0,
  MYELIN_BENCH_WAIT_BLOCK = 1,
  MYELIN_BENCH_WAIT_ADAPTIVE = 2
};
enum {
  MYELIN_BENCH_TRANSPORT_LOOPBACK = 0,
  MYELIN_BENCH_TRANSPORT_SHARED_MEMORY = 1,
  MYELIN_BENCH_TRANSPORT_KERNEL = 2
};

/* Workloads; those of a system are or-ed together. */
enum {
  MYELIN_BENCH_ROUNDTRIP = 1,
  MYELIN_BENCH_STREAM = 2,
  MYELIN_BENCH_IMAGE = 4,
  MYELIN_BENCH_FLOOD = 8,
  MYELIN_BENCH_STARTUP = 16
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
  uint32_t subscribers;      /* pongs, each a process: ping matches so many */
  uint32_t index;            /* which of them this is, from 0 */
  uint32_t topics;           /* from ping to pong; see select */
  /* The way to the other process, if that is on another host; else NULL and 0. */
  const char *interface;     /* of this host */
  const char *own;           /* this host's address there, IPv4 or IPv6 */
  const char *peer;          /* the other host's */
  uint16_t port;             /* the first of 15 that are this run's on both hosts, TCP and UDP */
};

/* The sequence number, little-endian in the first 8 bytes, of what ping publishes last. */
#define MYELIN_BENCH_GOODBYE UINT64_MAX

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
};

struct myelin_bench_driver {
  uint32_t abi;       /* MYELIN_BENCH_ABI */
  size_t struct_size; /* MYELIN_BENCH_SIZE(driver) */
  const struct myelin_bench_system *systems;
  size_t system_count;
  const struct myelin_bench_link *link; /* NULL if all systems are missing */
  const char *options;                  /* keys of the options, separated by spaces; NULL: none */
};

/* The whole main of a driver; returns the exit status. */
int myelin_bench_main(const struct myelin_bench_driver *driver);

/* Sets the text of the error about to be returned; `remedy` (may be NULL) says what to do. */
void myelin_bench_error(const char *message, const char *remedy);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t myelin_bench_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_BENCH_KIT_H */
