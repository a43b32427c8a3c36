/* Driver of `myelin bench` for Myelin from C++, over `libmyelin.so` as an installed program has it: beside
 * `myelin.shm-*`, which is in Rust, it shows what this binding costs.
 *
 *     driver.c   the systems
 *     link.cpp   the adaptor
 *
 * Without the library, MISSING is why.
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
