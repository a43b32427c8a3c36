/* Driver of `myelin bench` for ROS 2 by rcl, the library below rclcpp and rclpy: one node, publishers,
 * subscriptions, a wait set, without rclcpp's executor.
 *
 *     driver.c      the systems
 *     link.cpp      the adaptor against rcl
 *     library.cpp   loads ROS 2's libraries, with the middleware that a system asks for
 *     main.rs       what killed processes leave on the host
 *
 * `README.md` says what each system is given and why, and what its limits are. Without ROS 2, MISSING
 * is why.
 */
#include "link.h"

#ifndef MISSING
#define MISSING NULL
#define LINK (&myelin_ros2_link)
#define PROBE probe
static void probe(struct myelin_bench_system *system)
{
  system->missing = myelin_ros2_missing(system->name);
}
#else
#define VERSION NULL
#define LINK NULL
#define PROBE NULL
#endif

/* The largest payload that was tried. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Processes of a role that were tried. */
#define PROCESSES_MAX 4
/* Topics that were tried. */
#define TOPICS_MAX 100

#define SYSTEM(named, described) \
  { \
    MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .version = VERSION, \
    .missing = MISSING, .wait = MYELIN_BENCH_WAIT_BLOCK, .payload_bytes_max = PAYLOAD_BYTES_MAX, \
    .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .loans = 1, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_STARTUP, \
    .reliability = MYELIN_BENCH_BEST_EFFORT, .publishers_max = PROCESSES_MAX, \
    .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX, \
  }

static const struct myelin_bench_system systems[] = {
    SYSTEM(MYELIN_ROS2_FASTRTPS,
           "ROS 2 by rcl, without rclcpp's executor, on rmw_fastrtps as installed"),
    SYSTEM(MYELIN_ROS2_MYELIN, "ROS 2 by rcl, without rclcpp's executor, on rmw_myelin"),
};

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = sizeof systems / sizeof systems[0],
    .link = LINK,
    .probe = PROBE,
    .clean = myelin_ros2_clean,
};

int main(void)
{
  return myelin_bench_main(&driver);
}
