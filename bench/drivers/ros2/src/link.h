/* What of this driver is in C++ and in Rust, for the table in C. */
#ifndef MYELIN_ROS2_LINK_H
#define MYELIN_ROS2_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the names of those begin that are written with rcl; the others are with rclcpp. */
#define MYELIN_ROS2_RCL "ros2.rcl-"
/* Within one process. */
#define MYELIN_ROS2_INTRA "ros2.rclcpp-intra"

/* link.cpp */
extern const struct myelin_bench_link myelin_ros2_link;
/* library.cpp: why the middleware of a system cannot be had here, and what to do; NULL if it can. Lives
 * as long as the program. */
const char *myelin_ros2_missing(const char *system);
/* main.rs: removes what killed processes have left. */
int myelin_ros2_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_ROS2_LINK_H */
