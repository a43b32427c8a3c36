/* The adaptor in link.cpp, and what of this driver is in Rust. */
#ifndef MYELIN_ROS2_LINK_H
#define MYELIN_ROS2_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The systems, by the ROS middleware that they have. */
#define MYELIN_ROS2_FASTRTPS "ros2.rcl-fastrtps"
#define MYELIN_ROS2_MYELIN "ros2.rcl-myelin"

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
