/* ROS 2's middlewares, and rcl's functions and message types, loaded when a run begins. */
#ifndef MYELIN_ROS2_LIBRARY_HPP
#define MYELIN_ROS2_LIBRARY_HPP

#include <rcl/rcl.h>
#include <rcutils/error_handling.h>
#include <rmw/rmw.h>

namespace myelin {

/* Loads the middleware of `system`; check_middleware asks ROS 2, once it is loaded, whether it uses
 * that one. Both throw a Failure. */
void use_middleware(const char *system);
void check_middleware(const char *system);

#define MYELIN_ROS2_FUNCTIONS(F) \
  F(rcl_get_zero_initialized_init_options) F(rcl_init_options_init) F(rcl_init_options_fini) \
  F(rcl_init_options_set_domain_id) F(rcl_get_zero_initialized_context) F(rcl_init) \
  F(rcl_shutdown) F(rcl_context_fini) F(rcl_get_zero_initialized_node) \
  F(rcl_node_get_default_options) F(rcl_node_init) F(rcl_node_fini) \
  F(rcl_get_zero_initialized_publisher) F(rcl_publisher_get_default_options) \
  F(rcl_publisher_init) F(rcl_publisher_fini) F(rcl_publisher_get_subscription_count) \
  F(rcl_publish) F(rcl_get_zero_initialized_subscription) \
  F(rcl_subscription_get_default_options) F(rcl_subscription_init) F(rcl_subscription_fini) \
  F(rcl_subscription_get_publisher_count) F(rcl_take) F(rcl_get_zero_initialized_wait_set) \
  F(rcl_wait_set_init) F(rcl_wait_set_clear) F(rcl_wait_set_add_subscription) F(rcl_wait) \
  F(rcl_wait_set_fini) F(rcutils_get_default_allocator) F(rcutils_get_error_string) \
  F(rcutils_reset_error)

/* The loaded functions; they stay until the process ends. */
struct Library {
#define MYELIN_ROS2_MEMBER(name) decltype(&::name) name;
  MYELIN_ROS2_FUNCTIONS(MYELIN_ROS2_MEMBER)
#undef MYELIN_ROS2_MEMBER
  const rosidl_message_type_support_t *octets; /* std_msgs/msg/UInt8MultiArray, C++ */
  const rosidl_message_type_support_t *image;  /* sensor_msgs/msg/Image, C++ */

  /* Uses the middleware of `system`; throws a Failure. */
  explicit Library(const char *system);

  /* Throws rcl's error text, unless `code` is RCL_RET_OK. */
  void check(rcl_ret_t code, const char *what) const;
};

} // namespace myelin

#endif
