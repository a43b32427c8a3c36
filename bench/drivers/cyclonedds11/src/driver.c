/* Driver of `myelin bench` for CycloneDDS 11, in which shared memory is a plug-in (PSMX): over UDP,
 * over psmx_myelin, and over CycloneDDS's own plug-in for iceoryx.
 *
 *     driver.c    the systems
 *     version.c   specific to version 11: the plug-ins, and loans at both ends
 *     main.rs     removes what killed processes leave on the host
 *
 * The rest is shared with the driver for CycloneDDS 0.10 (`../../cyclonedds/src`). `README.md` says
 * how to build it and which settings each system has. Without CycloneDDS 11, MISSING says why.
 */
#include "../../cyclonedds/src/table.h"

#define MYELIN \
  .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .topics_max = MYELIN_TOPICS_MAX, \
  .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE

/* Largest tested number of topics. */
#define MYELIN_TOPICS_MAX 1000

static const struct myelin_bench_system systems[] = {
    {SYSTEM("cyclonedds11.udp", MYELIN_BENCH_WAIT_BLOCK, "CycloneDDS 11, serialised, UDP, waitset"), UDP},
    {SYSTEM("cyclonedds11.myelin", MYELIN_BENCH_WAIT_ADAPTIVE,
            "CycloneDDS 11 over psmx_myelin, loans written and read in place, waitset"),
     MYELIN, .loans = 1},
    {SYSTEM("cyclonedds11.myelin-block", MYELIN_BENCH_WAIT_BLOCK,
            "the same; the plug-in's thread sleeps at once"),
     MYELIN, .loans = 1},
    {SYSTEM("cyclonedds11.myelin-copy", MYELIN_BENCH_WAIT_ADAPTIVE,
            "CycloneDDS 11 over psmx_myelin, written from own memory, read by copy, waitset"),
     MYELIN},
    {SYSTEM("cyclonedds11.iceoryx", MYELIN_BENCH_WAIT_BLOCK,
            "CycloneDDS 11 over its plug-in for iceoryx, loans written and read in place, waitset"),
     ICEORYX, .loans = 1},
};

/* main.rs: removes what killed processes have left behind. */
int myelin_cyclonedds11_clean(void);

DRIVER_MAIN(DRIVER, .clean = myelin_cyclonedds11_clean)
