// Quality of service: converts ROS 2's settings to the library's.
#pragma once

#include "endpoint.hpp"
#include "support.hpp"

namespace rmw_myelin {

/// Replace the settings in `requested` that are left to the implementation, or to the endpoints of the other side, by
/// actual values. Set the error and return false if a setting is invalid. `topic` is the name in ROS 2.
bool resolve_publisher(const rmw_node_t *node, const char *topic, rmw_qos_profile_t requested,
                       rmw_qos_profile_t &actual);
bool resolve_subscription(const rmw_node_t *node, const char *topic, rmw_qos_profile_t requested,
                          rmw_qos_profile_t &actual);
bool resolve_service(rmw_qos_profile_t requested, rmw_qos_profile_t &actual);

/// The library's options for the topic of a publisher or a subscriber.
myelin_topic_options publisher_options(const Endpoint &endpoint);
myelin_topic_options subscriber_options(const Endpoint &endpoint);
/// Opens an endpoint's topic with these options and the type's name in DDS. The caller closes the topic. Throws a
/// std::runtime_error.
myelin_topic *open_topic(myelin_node *node, const Endpoint &endpoint, myelin_topic_options options);

/// Depth of a queue with `KEEP_ALL`, the same as in rmw_fastrtps.
constexpr uint32_t keep_all_depth = 5000;

}  // namespace rmw_myelin
