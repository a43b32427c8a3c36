/* Driver of `myelin bench` for Myelin from C++, over `libmyelin.so` like an installed program.
 * Compared with `myelin.shm-*`, which is in Rust, it shows the cost of this binding.
 *
 *     driver.c   the systems
 *     link.cpp   the adaptor
 *
 * Without the library, MISSING says why.
 */
#include "../../myelin-c/src/systems.h"

static const struct myelin_bench_system systems[] = SYSTEMS("cpp", "C++");

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
