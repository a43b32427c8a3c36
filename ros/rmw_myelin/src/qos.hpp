// Quality of service: what ROS 2 asks for, and what of the library gives it.
#pragma once

#include "support.hpp"

namespace rmw_myelin {

/// `asked` without what is left to the implementation. Best-available settings are resolved before.
/// Sets the error and returns false if it asks for what cannot be.
bool resolve(const rmw_qos_profile_t &asked, rmw_qos_profile_t &actual);

/// The library's options of a publisher's and of a subscriber's topic.
myelin_topic_options publisher_options(const rmw_qos_profile_t &qos, bool may_be_large);
myelin_topic_options subscriber_options(const rmw_qos_profile_t &qos);

/// Whether a publisher fits a subscription; the policy that does not, or RMW_QOS_POLICY_INVALID.
rmw_qos_policy_kind_t incompatible_policy(const rmw_qos_profile_t &offered,
                                          const rmw_qos_profile_t &asked);

/// The depth of a queue that keeps all.
constexpr uint32_t keep_all_depth = 4096;

}  // namespace rmw_myelin
