// Events of publishers and subscriptions, as ROS 2 counts them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "callback.hpp"
#include "humble.hpp"
#include "wait.hpp"

namespace rmw_myelin {

/// Counters of one kind of event of an endpoint, and who is told.
struct EventState {
  Trigger changed;
  Callback callback;
  /// How often it has happened, and how often since it was taken.
  int64_t total = 0;
  int64_t total_change = 0;
  /// Of matches: how many there are. Of liveliness: how many live, and how many do not.
  int64_t current = 0;
  int64_t current_change = 0;
  int64_t other = 0;
  int64_t other_change = 0;
  rmw_qos_policy_kind_t policy = RMW_QOS_POLICY_INVALID;
  /// Something has been counted since it was taken.
  bool is_new = false;

  /// It has happened so often.
  void add(int64_t times) {
    total += times;
    total_change += times;
  }
};

/// All events of one endpoint. Any thread may use it.
class Events {
 public:
  /// `guard` has the graph's thread call `deliver`.
  explicit Events(myelin_guard *guard) : guard_(guard) {}

  /// Whether this kind of event (`rmw_event_type_t`, see `humble.hpp`) is told of at all.
  static bool is_supported(int type);

  /// What a wait for this kind of event waits for.
  Trigger &changed(int type);
  /// Counts, and tells who waits. Who is to be called back is called by the graph's thread, and told afterwards
  /// if it waits too: locks may be held here.
  template <typename Count>
  void count(int type, Count count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    EventState &state = states_[type];
    count(state);
    state.is_new = true;
    if (!state.callback.add(1)) return state.changed.fire();
    is_undelivered_ = true;
    myelin_guard_trigger(guard_);
  }
  void count_once(int type) {
    count(type, [](EventState &state) { state.add(1); });
  }
  void take(int type, void *info);
  /// By the graph's thread, with no lock held: calls back.
  void deliver();
  void set_callback(int type, rmw_event_callback_t callback, const void *user_data);

 private:
  EventState &state_of(int type) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return states_[type];
  }

  myelin_guard *const guard_;
  std::mutex mutex_;
  std::map<int, EventState> states_;
  std::atomic<bool> is_undelivered_{false};
};

/// Something whose events the graph's thread takes.
class EventSource {
 public:
  virtual ~EventSource() = default;
  /// Takes what there is. When it is to be called again at the latest, by `myelin_now`. It waits for nothing.
  virtual uint64_t poll_events() = 0;
  virtual Events &events() = 0;
  /// Closes its endpoint of the library. It is not used any more.
  virtual void close() = 0;
};

/// What a wait for the event waits for.
Trigger &event_trigger(const rmw_event_t &event);

}  // namespace rmw_myelin
