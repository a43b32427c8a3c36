/* The systems of Myelin from C and from C++: those of `bench/drivers/myelin` between processes,
 * with default settings. Loans of run-time size on a topic of bytes, best effort; messages of up to
 * 104 B are published by copy, because the library copies them in any case.
 */
#ifndef MYELIN_DRIVER_SYSTEMS_H
#define MYELIN_DRIVER_SYSTEMS_H

#include "driver.h"

extern const struct myelin_bench_link myelin_driver_link;

/* `language` is a part of the name: "c", "cpp". */
#define SYSTEM(language, waits, way, described) \
  { \
    MYELIN_BENCH_SIZE(system), .name = "myelin-" language ".shm-" way, .about = (described), \
    .version = VERSION, .wait = (waits), .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .loans = 1, \
    .missing = MISSING, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP, \
    .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE, .publishers_max = 64, \
    .subscribers_max = 1024, .loan_bytes_min = 105, \
  }

#define SYSTEMS(language, spoken) \
  { \
    SYSTEM(language, MYELIN_BENCH_WAIT_POLL, "poll", \
           "Myelin's shared-memory route from " spoken "; the subscriber spins"), \
    SYSTEM(language, MYELIN_BENCH_WAIT_BLOCK, "block", \
           "Myelin's shared-memory route from " spoken "; the subscriber sleeps on a futex"), \
  }

#endif
