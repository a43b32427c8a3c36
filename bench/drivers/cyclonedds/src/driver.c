/* Driver of `myelin bench` for CycloneDDS 0.10: over UDP, on the loopback interface or to another
 * host, and over iceoryx shared memory with and without loans.
 *
 *     driver.c    the systems
 *     table.c     what they need of RouDi; table.h: what the tables of the two drivers have alike
 *     config.c    CycloneDDS's configuration (XML)
 *     link.c      the adaptor against the DDS C API
 *     match.c     waits for the other side
 *     security.c  DDS Security: the plug-ins, and the files of an enclave
 *     version.c   what is 0.10's alone
 *
 * All but the first and the last are the driver's for CycloneDDS 11, too (`../../cyclonedds11`).
 *
 * `README.md` explains the settings and limits of each system. The crate `myelin-bench-roudi` handles
 * iceoryx's daemon. Without CycloneDDS, MISSING is why.
 */
#include "table.h"

static const struct myelin_bench_system systems[] = {
    {SYSTEM("cyclonedds.udp", MYELIN_BENCH_WAIT_BLOCK, "CycloneDDS, serialised, UDP, waitset"), UDP},
    {SYSTEM("cyclonedds.udp-tuned", MYELIN_BENCH_WAIT_BLOCK,
            "the same with the largest receive buffer the kernel grants and large fragments"),
     UDP},
    {SYSTEM("cyclonedds.udp-secure", MYELIN_BENCH_WAIT_BLOCK,
            "cyclonedds.udp with DDS Security: both sides authenticated, all encrypted"),
     UDP, .secure = 1},
    {SYSTEM("cyclonedds.iceoryx", MYELIN_BENCH_WAIT_BLOCK,
            "CycloneDDS over iceoryx shared memory, written into loans, read by copy, waitset"),
     ICEORYX, .loans = 1},
    {SYSTEM("cyclonedds.iceoryx-copy", MYELIN_BENCH_WAIT_BLOCK,
            "CycloneDDS over iceoryx shared memory, written from own memory, waitset"),
     ICEORYX},
};

DRIVER_MAIN(DRIVER, .clean = myelin_roudi_clean)
