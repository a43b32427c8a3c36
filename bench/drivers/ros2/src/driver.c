/* Driver of `myelin bench` for ROS 2, by rcl, the library below rclcpp and rclpy, and by rclcpp.
 *
 *     driver.c      the systems
 *     link.cpp      the functions of the kit's table; link.hpp: what both libraries implement
 *     rcl.cpp       a node, publishers, subscriptions, a wait set
 *     rclcpp.cpp    the same by rclcpp, with callbacks and its executor
 *     library.cpp   loads rcl, and the middleware of a system
 *     main.rs       removes what killed processes leave on the host
 *
 * `README.md` explains the settings and limits of each system. Without ROS 2, MISSING says why;
 * without rclcpp, MISSING_RCLCPP does.
 */
#include "driver.h"
#include "link.h"

#ifndef MISSING_RCLCPP
#define MISSING_RCLCPP MISSING
#endif

/* The largest tested payload. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Largest tested number of processes of a role. */
#define PROCESSES_MAX 4
/* Largest tested number of topics. */
#define TOPICS_MAX 100

#define SYSTEM(named, described, absent) \
  MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .version = VERSION, \
  .missing = (absent), .payload_bytes_max = PAYLOAD_BYTES_MAX, .loans = 1

#define RCL(named, waits, described) \
  { \
    SYSTEM(named, described, MISSING), .wait = (waits), \
    .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_STARTUP | MYELIN_BENCH_REPLAY, \
    .publishers_max = PROCESSES_MAX, .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX, \
  }

#define RCLCPP(named, described) \
  { \
    SYSTEM(named, described, MISSING_RCLCPP), .wait = MYELIN_BENCH_WAIT_CALLBACK, \
    .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_REPLAY, \
    .publishers_max = PROCESSES_MAX, .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX, \
  }

static const struct myelin_bench_system systems[] = {
    RCL("ros2.rcl-fastrtps", MYELIN_BENCH_WAIT_BLOCK,
        "ROS 2 by rcl, without rclcpp's executor, on rmw_fastrtps as installed"),
    /* rmw_myelin's default: it spins as long as that pays off, then sleeps. */
    RCL("ros2.rcl-myelin", MYELIN_BENCH_WAIT_ADAPTIVE,
        "ROS 2 by rcl, without rclcpp's executor, on rmw_myelin"),
    RCLCPP("ros2.rclcpp", "ROS 2 by rclcpp, callbacks in its executor, on rmw_fastrtps as installed"),
    RCLCPP("ros2.rclcpp-myelin", "ROS 2 by rclcpp, callbacks in its executor, on rmw_myelin"),
    {SYSTEM(MYELIN_ROS2_INTRA,
            "ROS 2 by rclcpp in one process, intra-process, callbacks in its executor", MISSING_RCLCPP),
     .wait = MYELIN_BENCH_WAIT_CALLBACK, .transport = MYELIN_BENCH_TRANSPORT_PROCESS,
     .workloads = MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE, .one_process = 1},
};

DRIVER_MAIN(DRIVER_OF(systems, myelin_ros2_link), .probe = PRESENT(myelin_ros2_probe), .clean = myelin_ros2_clean)
