// Events of publishers and subscriptions, with ROS 2's counters.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "callback.hpp"
#include "humble.hpp"
#include "wait.hpp"

namespace rmw_myelin {

/// The counters of one kind of event, the callback, and the trigger of waits.
struct EventState {
  Trigger changed;
  Callback callback;
  /// Number of events, and number of events since the last take.
  int64_t total = 0;
  int64_t total_change = 0;
  /// For matches: `current` is the number of matches. For liveliness: `current` is the number of publishers that are
  /// alive, `other` of the rest.
  int64_t current = 0;
  int64_t current_change = 0;
  int64_t other = 0;
  int64_t other_change = 0;
  rmw_qos_policy_kind_t policy = RMW_QOS_POLICY_INVALID;
  /// Something has been counted since the last take.
  bool is_new = false;

  /// Counts `times` events.
  void add(int64_t times) {
    total += times;
    total_change += times;
  }
};

/// All events of one endpoint. Any thread may use it.
class Events {
 public:
  /// Triggering `guard` makes the graph's thread call `deliver`.
  explicit Events(myelin_guard_condition *guard) : guard_(guard) {}

  /// Whether rmw_myelin reports this kind of event (`rmw_event_type_t`, see `humble.hpp`).
  static bool is_supported(int type);

  /// The trigger that a wait for this kind of event waits for.
  Trigger &changed(int type);
  /// Counts an event by `count`. Without a callback, wakes waits at once. With one, wakes the graph's thread, which
  /// first calls back and then wakes waits. The caller may hold locks.
  template <typename Count>
  void count(int type, Count count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    EventState &state = states_[type];
    count(state);
    state.is_new = true;
    if (!state.callback.add(1)) return state.changed.fire();
    is_undelivered_ = true;
    myelin_guard_condition_trigger(guard_);
  }
  void count_once(int type) {
    count(type, [](EventState &state) { state.add(1); });
  }
  void take(int type, void *info);
  /// Calls the callbacks. Called by the graph's thread, which holds no lock.
  void deliver();
  void set_callback(int type, rmw_event_callback_t callback, const void *user_data);

 private:
  EventState &state_of(int type) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return states_[type];
  }

  myelin_guard_condition *const guard_;
  std::mutex mutex_;
  std::map<int, EventState> states_;
  std::atomic<bool> is_undelivered_{false};
};

/// An object whose events the graph's thread takes.
class EventSource {
 public:
  virtual ~EventSource() = default;
  /// Takes pending events. Returns the time (of `myelin_now`) by which to call it again. Does not block.
  virtual uint64_t poll_events() = 0;
  virtual Events &events() = 0;
  /// Closes its endpoint of the library. Nothing may use the object afterwards.
  virtual void close() = 0;
};

/// The trigger that a wait for the event waits for.
Trigger &event_trigger(const rmw_event_t &event);

}  // namespace rmw_myelin
