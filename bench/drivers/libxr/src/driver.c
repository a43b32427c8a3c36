/* Driver of `myelin bench` for the topics of LibXR (https://github.com/Jiu-xiao/libxr), in one
 * process: by callback, and by a subscriber that waits in its own thread.
 *
 *     driver.c   the systems
 *     link.cpp   the adaptor against LibXR
 *
 * A LibXR topic carries objects of one C++ type, so a message is such an object, with a type for
 * each size. LibXR's users fill their own object and publish it, and LibXR passes on a reference.
 * Therefore the publisher's loan is that object, and there is no copy that users would not have,
 * too. `README.md` says how to build LibXR and explains its other peculiarities. Without LibXR,
 * MISSING says why.
 */
#include "driver.h"
#include "link.h"

#define SYSTEM(named, described, waits, kinds) \
  { \
    MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .version = VERSION, \
    .wait = (waits), .transport = MYELIN_BENCH_TRANSPORT_PROCESS, .loans = 1, .workloads = (kinds), \
    .missing = MISSING, .payload_bytes_max = MYELIN_LIBXR_PAYLOAD_BYTES_MAX, .one_process = 1, \
  }

static const struct myelin_bench_system systems[] = {
    SYSTEM(MYELIN_LIBXR_CALLBACK,
           "LibXR topic, own object published by reference, callback in the publisher's thread",
           MYELIN_BENCH_WAIT_CALLBACK,
           MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | MYELIN_BENCH_PUBLISH),
    SYSTEM("libxr.sync",
           "LibXR topic, own object published, copied to a SyncSubscriber in another thread",
           MYELIN_BENCH_WAIT_BLOCK, MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE),
};

const struct myelin_bench_driver myelin_libxr_driver = {
    DRIVER_OF(systems, myelin_libxr_link),
    .check = PRESENT(myelin_libxr_check),
};

/* Weak, because the tests, which call the driver within their process, have their own main. */
__attribute__((weak)) int main(void)
{
  return myelin_bench_main(&myelin_libxr_driver);
}
