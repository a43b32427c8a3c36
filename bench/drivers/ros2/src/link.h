/* The C++ and Rust parts of this driver, for the table in C. */
#ifndef MYELIN_ROS2_LINK_H
#define MYELIN_ROS2_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prefix of the systems written with rcl; the others use rclcpp. */
#define MYELIN_ROS2_RCL "ros2.rcl-"
/* Within one process. */
#define MYELIN_ROS2_INTRA "ros2.rclcpp-intra"

/* link.cpp */
extern const struct myelin_bench_link myelin_ros2_link;
/* library.cpp: adds why the middleware of a system is not available here, and what to do. */
void myelin_ros2_probe(struct myelin_bench_system *system);
/* main.rs: removes what killed processes have left behind. */
int myelin_ros2_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_ROS2_LINK_H */
