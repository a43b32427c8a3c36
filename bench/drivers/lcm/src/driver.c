/* Driver of `myelin bench` for LCM 1.3: UDP multicast that stays on the loopback interface.
 *
 *     driver.c     the system
 *     link.c       the adaptor against liblcm, and how both sides find each other
 *     loopback.c   keeps LCM's sockets on the loopback interface
 *
 * `README.md` explains the choices and limits. Without liblcm, MISSING says why.
 */
#include "driver.h"

extern const struct myelin_bench_link myelin_lcm_link;
extern void myelin_lcm_probe(struct myelin_bench_system *system);

/* LCM keeps 16 MiB of incomplete messages (its MAX_FRAG_BUF_TOTAL_SIZE), so it drops a larger
 * message while it arrives. 64 KiB of that is reserved for other messages. */
#define PAYLOAD_BYTES_MAX ((16u << 20) - 65536u)
/* Limit of processes of a role: each is identified by a bit (see `match` in link.c). */
#define PROCESSES_MAX 64
/* Largest tested number of channels. LCM has no limit, but searches all of them for each packet
 * that names one for the first time. */
#define TOPICS_MAX 1024

static const struct myelin_bench_system systems[] = {{
    MYELIN_BENCH_SIZE(system),
    .name = "lcm.udpm",
    .about = "LCM: UDP multicast on the loopback interface, copied out in the handler",
    .version = VERSION,
    .wait = MYELIN_BENCH_WAIT_BLOCK,
    .transport = MYELIN_BENCH_TRANSPORT_LOOPBACK,
    .missing = MISSING,
    .payload_bytes_max = PAYLOAD_BYTES_MAX,
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE |
                 MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP | MYELIN_BENCH_REPLAY,
    .reliability = MYELIN_BENCH_BEST_EFFORT,
    .publishers_max = PROCESSES_MAX,
    .subscribers_max = PROCESSES_MAX,
    .topics_max = TOPICS_MAX,
}};

DRIVER_MAIN(DRIVER_OF(systems, myelin_lcm_link), .probe = PRESENT(myelin_lcm_probe))
