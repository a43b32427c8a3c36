// Quality of service: what ROS 2 asks for, and what of the library gives it.
#pragma once

#include "endpoint.hpp"
#include "support.hpp"

namespace rmw_myelin {

/// `asked` of a publisher or a subscription of `topic`, or of a service, without what is left to the
/// implementation, or to what the other side has. They set the error and return false if it cannot be.
bool resolve_publisher(const rmw_node_t *node, const char *topic, rmw_qos_profile_t asked,
                       rmw_qos_profile_t &actual);
bool resolve_subscription(const rmw_node_t *node, const char *topic, rmw_qos_profile_t asked,
                          rmw_qos_profile_t &actual);
bool resolve_service(rmw_qos_profile_t asked, rmw_qos_profile_t &actual);

/// The library's options of a publisher's and of a subscriber's topic.
myelin_topic_options publisher_options(const Endpoint &endpoint);
myelin_topic_options subscriber_options(const Endpoint &endpoint);
/// An endpoint's topic, with these and what its type is in DDS; to be closed. Throws a std::runtime_error.
myelin_topic *open_topic(myelin_node *node, const Endpoint &endpoint, myelin_topic_options options);

/// Whether a publisher fits a subscription; the policy that does not, or RMW_QOS_POLICY_INVALID.
rmw_qos_policy_kind_t incompatible_policy(const rmw_qos_profile_t &offered,
                                          const rmw_qos_profile_t &asked);

/// The depth of a queue that keeps all: rmw_fastrtps's.
constexpr uint32_t keep_all_depth = 5000;

}  // namespace rmw_myelin
