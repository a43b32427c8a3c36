/* Driver of `myelin bench` for eProsima Fast DDS 2 and 3: over UDP, on the loopback interface or to another
 * host, over its shared memory transport, and by data sharing with loans at both ends.
 *
 *     driver.c        the systems
 *     link.cpp        the adaptor against the DDS API
 *     endpoints.cpp   participant, writers, readers; matching; proof of the transport
 *     listeners.hpp   what Fast DDS calls back
 *     octets.hpp      the type of a run
 *     versions.hpp    what Fast DDS 2 and 3 name differently
 *     config.rs       Fast DDS's configuration (XML profiles)
 *     leftovers.rs    what killed processes leave on the host
 *
 * `README.md` says what each system is given and why, and what its limits are. `check/` holds a round
 * trip written without the kit. Without Fast DDS, MISSING is why.
 */
#include "driver.h"
#include "link.h"

/* The largest payload that was tried. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Processes of a role that were tried. */
#define PROCESSES_MAX 16
/* Topics that were tried. */
#define TOPICS_MAX 1000

#define SYSTEM(named, described) \
  MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .missing = MISSING, \
  .wait = MYELIN_BENCH_WAIT_BLOCK, .payload_bytes_max = PAYLOAD_BYTES_MAX, \
  .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
               MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP, \
  .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE, \
  .publishers_max = PROCESSES_MAX, .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX

static const struct myelin_bench_system systems[] = {
    {SYSTEM("fastdds.udp", "Fast DDS, serialised, UDP, sleeping"),
     .transport = MYELIN_BENCH_TRANSPORT_LOOPBACK, .across_hosts = 1},
    {SYSTEM("fastdds.shm", "Fast DDS, serialised, its shared memory transport, sleeping"),
     .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY},
    {SYSTEM(MYELIN_FASTDDS_DATASHARING,
            "Fast DDS, data sharing: loaned, written and read in place, sleeping"),
     .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .loans = 1},
};

DRIVER_MAIN(DRIVER_OF(systems, myelin_fastdds_link), .check = myelin_fastdds_check, .probe = PRESENT(myelin_fastdds_probe), .clean = myelin_fastdds_clean)
