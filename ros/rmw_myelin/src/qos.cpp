#include "qos.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "humble.hpp"
#include "records.hpp"
#include "rmw/get_topic_endpoint_info.h"
#include "rmw_dds_common/qos.hpp"

namespace rmw_myelin {
namespace {

constexpr rmw_time_t infinite = {9223372036ULL, 854775807ULL};
constexpr uint32_t depth_max = 65535;
/// Least depth of a publisher's queue. In ROS 2 a subscription has a queue of its own; in Myelin the smaller depth of
/// publisher and subscription counts. The queue uses memory while a subscription does not read, so it is shorter for
/// large messages.
constexpr uint32_t publisher_depth_min = 256;
constexpr uint32_t large_depth_min = 16;
/// As deep as the queues of ROS 2's parameter services.
constexpr uint32_t service_depth_min = 1000;
/// How long a publisher with `KEEP_ALL` blocks if a queue is full: DDS's default. rclpy holds the interpreter lock
/// meanwhile.
constexpr uint64_t keep_all_block_ns = 100'000'000;

void resolve_duration(rmw_time_t &time) {
  if (time.sec == 0 && time.nsec == 0) time = infinite;
}

bool resolve(const rmw_qos_profile_t &requested, rmw_qos_profile_t &actual) {
  actual = requested;
  switch (requested.history) {
    case RMW_QOS_POLICY_HISTORY_UNKNOWN:
      RMW_SET_ERROR_MSG("Invalid QoS policy: history");
      return false;
    case RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT:
      actual.history = RMW_QOS_POLICY_HISTORY_KEEP_LAST;
      break;
    default:
      break;
  }
  if (actual.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST &&
      requested.depth == RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT) {
    actual.depth = 10;
  }
  if (requested.reliability == RMW_QOS_POLICY_RELIABILITY_UNKNOWN ||
      requested.durability == RMW_QOS_POLICY_DURABILITY_UNKNOWN ||
      requested.liveliness == RMW_QOS_POLICY_LIVELINESS_UNKNOWN) {
    RMW_SET_ERROR_MSG("Invalid QoS policy: reliability, durability or liveliness is unknown");
    return false;
  }
  if (requested.reliability == RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT) {
    actual.reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  }
  if (requested.durability == RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT) {
    actual.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
  }
  if (requested.liveliness == RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT) {
    actual.liveliness = RMW_QOS_POLICY_LIVELINESS_AUTOMATIC;
  }
  resolve_duration(actual.deadline);
  resolve_duration(actual.lifespan);
  resolve_duration(actual.liveliness_lease_duration);
  return true;
}

uint32_t depth_of(const rmw_qos_profile_t &qos) {
  if (qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL) return keep_all_depth;
  return static_cast<uint32_t>(std::min<size_t>(qos.depth, depth_max));
}

myelin_topic_options options(const rmw_qos_profile_t &qos, uint32_t depth) {
  myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  options.depth = depth;
  options.transient_local =
      qos.durability == RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL ? depth_of(qos) : 0;
  const uint64_t deadline = nanoseconds(qos.deadline);
  options.deadline_ns = deadline == MYELIN_FOREVER ? 0 : deadline;
  const uint64_t lifespan = nanoseconds(qos.lifespan);
  options.lifespan_ns = lifespan == MYELIN_FOREVER ? 0 : lifespan;
  options.is_alive_by_topic = qos.liveliness == RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC;
  if (qos.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE) {
    const bool keeps_all = qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    options.reliability = keeps_all ? MYELIN_RELIABLE : MYELIN_KEEP_LAST;
    options.reliable_ns = keep_all_block_ns;
  }
  return options;
}

}  // namespace

bool resolve_publisher([[maybe_unused]] const rmw_node_t *node,
                       [[maybe_unused]] const char *topic, rmw_qos_profile_t requested,
                       rmw_qos_profile_t &actual) {
#if !RMW_MYELIN_HUMBLE
  if (rmw_dds_common::qos_profile_get_best_available_for_topic_publisher(
          node, topic, &requested, rmw_get_subscriptions_info_by_topic) != RMW_RET_OK) {
    return false;
  }
#endif
  return resolve(requested, actual);
}

bool resolve_subscription([[maybe_unused]] const rmw_node_t *node,
                          [[maybe_unused]] const char *topic, rmw_qos_profile_t requested,
                          rmw_qos_profile_t &actual) {
#if !RMW_MYELIN_HUMBLE
  if (rmw_dds_common::qos_profile_get_best_available_for_topic_subscription(
          node, topic, &requested, rmw_get_publishers_info_by_topic) != RMW_RET_OK) {
    return false;
  }
#endif
  return resolve(requested, actual);
}

bool resolve_service(rmw_qos_profile_t requested, rmw_qos_profile_t &actual) {
#if !RMW_MYELIN_HUMBLE
  requested = rmw_dds_common::qos_profile_update_best_available_for_services(requested);
#endif
  return resolve(requested, actual);
}

myelin_topic_options publisher_options(const Endpoint &endpoint) {
  uint32_t depth_min = endpoint.type.plan->may_be_large ? large_depth_min : publisher_depth_min;
  if (endpoint.is_of_service) depth_min = service_depth_min;
  return options(endpoint.qos, std::max(depth_of(endpoint.qos), depth_min));
}

myelin_topic_options subscriber_options(const Endpoint &endpoint) {
  uint32_t depth = depth_of(endpoint.qos);
  // Replies from other hosts arrive together with the replies to all other clients. Each client keeps as many of its
  // own as its depth allows.
  if (endpoint.is_of_replies) depth = std::max(depth, service_depth_min);
  return options(endpoint.qos, depth);
}

myelin_topic *open_topic(myelin_node *node, const Endpoint &endpoint, myelin_topic_options options) {
  options.dds_type = endpoint.type.name.c_str();
  options.dds_cdr = true;
  const std::string user_data = endpoint.user_data();
  options.dds_user_data = user_data.c_str();
  options.dds_vendor = endpoint.dds_vendor();
  const std::string name = library_name(endpoint);
  if (name != endpoint.topic) options.dds_name = endpoint.topic.c_str();
  options.matching = MYELIN_MATCHING_REQUESTED_OFFERED;
  std::vector<myelin_attribute> elements;
  const NamesAndValues attributes = attributes_of(endpoint);
  set_attributes(options, attributes, elements);
  const std::string definition = endpoint.type.definition();
  if (!definition.empty()) {
    options.schema_encoding = "ros2msg";
    options.schema = definition.data();
    options.schema_bytes = definition.size();
  }
  myelin_topic *topic = nullptr;
  if (myelin_topic_open(node, name.c_str(), nullptr, &options, &topic) != MYELIN_OK) {
    throw std::runtime_error(myelin_error_message());
  }
  return topic;
}

}  // namespace rmw_myelin
