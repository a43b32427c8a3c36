/* Driver of `myelin bench` for ZeroMQ: PUB and SUB over UNIX sockets (`ipc://`).
 *
 *     driver.c   the system
 *     link.c     the adaptor against libzmq
 *
 * `README.md` explains the choices and limits. `check/` has a round trip written without the kit.
 * Without libzmq, MISSING says why.
 */
#include <limits.h>
#include <stdio.h>

#include "myelin_bench_kit.h"

#ifndef MISSING
#define MISSING NULL
extern const struct myelin_bench_link myelin_zeromq_link;
extern void myelin_zeromq_probe(struct myelin_bench_system *system);
#define LINK (&myelin_zeromq_link)
#define PROBE myelin_zeromq_probe
#else
#define LINK NULL
#define PROBE NULL
#endif

static int check(const struct myelin_bench_prepare *prepare)
{
  char text[64];
  if (!prepare->one_way || (prepare->depth > 0 && prepare->depth <= INT_MAX))
    return 0;
  /* For ZeroMQ, 0 means no limit. */
  (void)snprintf(text, sizeof text, "zeromq.ipc: a depth of %u cannot be", prepare->depth);
  myelin_bench_error(text, "workload.depth: at least 1");
  return -1;
}

static const struct myelin_bench_system systems[] = {{
    MYELIN_BENCH_SIZE(system),
    .name = "zeromq.ipc",
    .about = "ZeroMQ: PUB and SUB over a UNIX socket, messages filled in place",
    .wait = MYELIN_BENCH_WAIT_BLOCK,
    .transport = MYELIN_BENCH_TRANSPORT_KERNEL,
    .loans = 1,
    .missing = MISSING,
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE |
                 MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP | MYELIN_BENCH_REPLAY,
    .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE,
    .publishers_max = UINT32_MAX,
    .subscribers_max = UINT32_MAX,
    .topics_max = UINT32_MAX,
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
