/* Driver of `myelin bench` for LCM 1.3: UDP multicast that stays on the loopback interface.
 *
 *     driver.c     the system
 *     link.c       the adaptor against liblcm, and how both sides find each other
 *     loopback.c   keeps LCM's sockets on the loopback interface
 *
 * `README.md` explains the choices and limits. Without liblcm, MISSING says why.
 */
#include <limits.h>
#include <stdio.h>

#include "myelin_bench_kit.h"

#ifndef MISSING
#define MISSING NULL
extern const struct myelin_bench_link myelin_lcm_link;
extern void myelin_lcm_probe(struct myelin_bench_system *system);
#define LINK (&myelin_lcm_link)
#define PROBE myelin_lcm_probe
#else
#define VERSION NULL
#define LINK NULL
#define PROBE NULL
#endif

/* LCM keeps 16 MiB of incomplete messages (its MAX_FRAG_BUF_TOTAL_SIZE), so it drops a larger
 * message while it arrives. 64 KiB of that is reserved for other messages. */
#define PAYLOAD_BYTES_MAX ((16u << 20) - 65536u)
/* Limit of processes of a role: each is identified by a bit (see `match` in link.c). */
#define PROCESSES_MAX 64
/* Largest tested number of channels. LCM has no limit, but searches all of them for each packet
 * that names one for the first time. */
#define TOPICS_MAX 1024

static int check(const struct myelin_bench_prepare *prepare)
{
  char text[64];
  if (!prepare->one_way || (prepare->depth > 0 && prepare->depth <= INT_MAX))
    return 0;
  /* For LCM, 0 means no limit. */
  (void)snprintf(text, sizeof text, "lcm.udpm: a depth of %u cannot be", prepare->depth);
  myelin_bench_error(text, "workload.depth: at least 1");
  return -1;
}

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

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = 1,
    .link = LINK,
    .check = check,
    .probe = PROBE,
};

int main(void)
{
  return myelin_bench_main(&driver);
}
