// Kinds of events that ROS 2 Humble's headers lack. No program requests them there.
#pragma once

#include "rmw/event.h"

#if __has_include("rmw/events_statuses/matched.h")
#define RMW_MYELIN_HUMBLE 0
#else
#define RMW_MYELIN_HUMBLE 1

struct rmw_matched_status_t {
  size_t total_count;
  size_t total_count_change;
  size_t current_count;
  int32_t current_count_change;
};
#endif

namespace rmw_myelin {

#if RMW_MYELIN_HUMBLE
constexpr int subscription_incompatible_type = 100;
constexpr int subscription_matched = 101;
constexpr int publisher_incompatible_type = 102;
constexpr int publication_matched = 103;
#else
constexpr int subscription_incompatible_type = RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE;
constexpr int subscription_matched = RMW_EVENT_SUBSCRIPTION_MATCHED;
constexpr int publisher_incompatible_type = RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE;
constexpr int publication_matched = RMW_EVENT_PUBLICATION_MATCHED;
#endif

}  // namespace rmw_myelin
