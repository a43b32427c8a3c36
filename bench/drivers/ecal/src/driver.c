/* Driver of `myelin bench` for eCAL 6 (https://github.com/eclipse-ecal/ecal) between two processes:
 * over its shared memory, with the copies that it makes by default, and without.
 *
 *     driver.c   the systems
 *     link.cpp   the adaptor against eCAL
 *     main.rs    the folder of eCAL's files, and their removal
 *
 * `README.md` explains the choices and eCAL's peculiarities. Without eCAL, MISSING says why.
 */
#include "driver.h"
#include "link.h"

/* The same as the floor's, for comparison; the samples of a run fit into memory. */
#define PAYLOAD_BYTES_MAX (64u << 20)
/* Largest tested numbers. */
#define PROCESSES_MAX 32
#define TOPICS_MAX 100

#define SYSTEM(named, described, reliable) \
  { \
    MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), \
    .wait = MYELIN_BENCH_WAIT_CALLBACK, .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP | MYELIN_BENCH_REPLAY, \
    .missing = MISSING, .payload_bytes_max = PAYLOAD_BYTES_MAX, \
    .reliability = MYELIN_BENCH_BEST_EFFORT | (reliable), \
    .publishers_max = PROCESSES_MAX, .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX, \
  }

static const struct myelin_bench_system systems[] = {
    SYSTEM("ecal.shm", "eCAL over shared memory, copied in and out of it, callbacks",
           MYELIN_BENCH_RELIABLE),
    /* Its handshake loses messages while a subscriber stands still. */
    SYSTEM(MYELIN_ECAL_ZERO_COPY,
           "eCAL over shared memory, zero_copy_mode: read where it lies, callbacks", 0),
};

DRIVER_MAIN(DRIVER_OF(systems, myelin_ecal_link), .probe = PRESENT(myelin_ecal_probe), .clean = myelin_ecal_clean)
