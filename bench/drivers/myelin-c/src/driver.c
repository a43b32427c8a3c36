/* Driver of `myelin bench` for Myelin from C, over `libmyelin.so` like an installed program.
 * Compared with `myelin.shm-*`, which is in Rust, it shows the cost of this binding.
 *
 *     driver.c   the systems
 *     link.c     the adaptor
 *
 * Without the library, MISSING says why.
 */
#include "systems.h"

static const struct myelin_bench_system systems[] = SYSTEMS("c", "C");

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = sizeof systems / sizeof *systems,
    .link = LINK,
};

int main(void)
{
  return myelin_bench_main(&driver);
}
