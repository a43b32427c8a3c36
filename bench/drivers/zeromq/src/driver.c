/* Driver of `myelin bench` for ZeroMQ: PUB and SUB over UNIX sockets (`ipc://`).
 *
 *     driver.c   the system
 *     link.c     the adaptor against libzmq
 *
 * `README.md` explains the choices and limits. `check/` has a round trip written without the kit.
 * Without libzmq, MISSING says why.
 */
#include "driver.h"

extern const struct myelin_bench_link myelin_zeromq_link;
extern void myelin_zeromq_probe(struct myelin_bench_system *system);

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

DRIVER_MAIN(DRIVER_OF(systems, myelin_zeromq_link), .probe = PRESENT(myelin_zeromq_probe))
