// Events of publishers and subscriptions, as ROS 2 counts them.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "rmw/event.h"
#include "rmw/event_callback_type.h"
#include "wait.hpp"

namespace rmw_myelin {

/// Counters of one kind of event of an endpoint, and who is told.
struct EventState {
  Trigger changed;
  /// How often it has happened, and how often since it was taken.
  int64_t total = 0;
  int64_t total_change = 0;
  /// Of matches: how many there are. Of liveliness: how many live, and how many do not.
  int64_t current = 0;
  int64_t current_change = 0;
  int64_t other = 0;
  int64_t other_change = 0;
  rmw_qos_policy_kind_t policy = RMW_QOS_POLICY_INVALID;
  rmw_event_callback_t callback = nullptr;
  const void *user_data = nullptr;
  size_t uncalled = 0;
};

/// All events of one endpoint. Any thread may use it.
class Events {
 public:
  /// Whether this kind of event is told of at all.
  static bool is_supported(rmw_event_type_t type);

  EventState &of(rmw_event_type_t type);
  /// Counts under the lock, then tells who waits or is to be called.
  template <typename Count>
  void count(rmw_event_type_t type, Count count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    EventState &state = state_of(type);
    count(state);
    tell(state);
  }
  rmw_ret_t take(rmw_event_type_t type, void *info);
  void set_callback(rmw_event_type_t type, rmw_event_callback_t callback, const void *user_data);

  /// What the library tells of a match: of a reader's, or of a writer's.
  void happened(const myelin_event &event, bool is_publisher);

 private:
  EventState &state_of(rmw_event_type_t type);
  void tell(EventState &state);

  std::mutex mutex_;
  std::map<rmw_event_type_t, EventState> states_;
};

/// What a wait for the event waits for.
Trigger &event_trigger(const rmw_event_t &event);

}  // namespace rmw_myelin
