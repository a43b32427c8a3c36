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

DRIVER_MAIN(DRIVER_OF(systems, myelin_driver_link))
