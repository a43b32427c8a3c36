/* Driver of `myelin bench` for CycloneDDS 11, whose shared memory is a plug-in's (PSMX): over UDP, over
 * psmx_myelin, and over CycloneDDS's own plug-in for iceoryx.
 *
 *     driver.c    the systems
 *     version.c   what is 11's alone: the plug-ins, and loans at both ends
 *     main.rs     what killed processes leave on the host
 *
 * The rest is that of the driver for CycloneDDS 0.10 (`../../cyclonedds/src`). `README.md` says how it is
 * built and what each system is given. Without CycloneDDS 11, MISSING is why.
 */
#include "../../cyclonedds/src/table.h"

#define MYELIN \
  .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .topics_max = MYELIN_TOPICS_MAX, \
  .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE

/* Topics that were tried. */
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

/* main.rs: removes what killed processes have left. */
int myelin_cyclonedds11_clean(void);

static const struct myelin_bench_driver driver = {DRIVER, .clean = myelin_cyclonedds11_clean};

int main(void)
{
  return myelin_bench_main(&driver);
}
