/* Driver of `myelin bench` for CycloneDDS 0.10: over UDP, on the loopback interface or to another
 * host, and over iceoryx shared memory with and without loans.
 *
 *     driver.c    the systems
 *     table.c     what they need of RouDi; table.h: what the tables of the two drivers have alike
 *     config.c    CycloneDDS's configuration (XML)
 *     link.c      the adaptor against the DDS C API
 *     match.c     waits for the other side
 *     version.c   what is 0.10's alone
 *
 * All but the first and the last are the driver's for CycloneDDS 11, too (`../../cyclonedds11`).
 *
 * iceoryx's daemon, its pools and what it leaves behind are the crate `myelin-bench-roudi`'s. Without
 * CycloneDDS, MISSING is why.
 *
 * Limits: a domain has room for 120 participants, of which those that start at once need twice as
 * many as they are; hence PEERS_MAX publishers and as many subscribers. Over iceoryx a stream is best
 * effort alone: CycloneDDS 0.10 leaves iceoryx to discard the oldest of a full queue, whatever the
 * reliability, and takes KEEP_ALL off shared memory. Its queues have room for 256 samples, and one
 * thread of a process waits for at most 127 readers.
 *
 * `udp` is CycloneDDS with the receive buffer it asks for by itself (1 MiB), `udp-tuned` with the
 * largest the kernel grants. On a virtual machine with two cores (`net.core.rmem_max` of 4 MiB) 20
 * reliable messages of 10 MiB took 19 s with the former, nearly all of it for fragments sent again,
 * and 0.8 s with the latter.
 *
 * `check/` holds a round trip written without the kit; `bench/check/fidelity.py` compares the two.
 */
#include "table.h"

static const struct myelin_bench_system systems[] = {
    {SYSTEM("cyclonedds.udp", MYELIN_BENCH_WAIT_BLOCK, "CycloneDDS, serialised, UDP, waitset"), UDP},
    {SYSTEM("cyclonedds.udp-tuned", MYELIN_BENCH_WAIT_BLOCK,
            "the same with the largest receive buffer the kernel grants and large fragments"),
     UDP},
    {SYSTEM("cyclonedds.iceoryx", MYELIN_BENCH_WAIT_BLOCK,
            "CycloneDDS over iceoryx shared memory, written into loans, read by copy, waitset"),
     ICEORYX, .loans = 1},
    {SYSTEM("cyclonedds.iceoryx-copy", MYELIN_BENCH_WAIT_BLOCK,
            "CycloneDDS over iceoryx shared memory, written from own memory, waitset"),
     ICEORYX},
};

static const struct myelin_bench_driver driver = {DRIVER, .clean = myelin_roudi_clean};

int main(void)
{
  return myelin_bench_main(&driver);
}
