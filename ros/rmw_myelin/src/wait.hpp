// Waiting: guard conditions, and wait sets based on the library's wait set.
//
// Each call of rmw_wait passes everything to wait for. A wait set keeps the entries of the previous call attached. An
// entry that is the same again costs one comparison; only differences are attached or detached.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "support.hpp"

namespace rmw_myelin {

class Reader;
class WaitSet;

/// A flag that ends waits while it is pending: a guard condition, an event, or samples that a listener has taken. Any
/// thread may use it.
class Trigger {
 public:
  Trigger() = default;
  ~Trigger();
  Trigger(const Trigger &) = delete;
  Trigger &operator=(const Trigger &) = delete;

  /// Makes it pending, and wakes the wait sets that it is attached to.
  void fire();
  bool is_pending() const { return pending_.load(std::memory_order_acquire); }
  /// Ends the pending state. Returns whether it was pending.
  bool clear() { return pending_.exchange(false, std::memory_order_acq_rel); }

 private:
  friend class WaitSet;
  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  std::vector<WaitSet *> waiters_;
};

/// The wait strategy of all wait sets, from `MYELIN_WAIT`; adaptive if that is not set.
int32_t wait_strategy();

/// Waits for readers and triggers of its context. One thread at a time may wait; other threads may remove readers and
/// triggers meanwhile.
class WaitSet {
 public:
  /// Throws a std::runtime_error if the library cannot open a wait set. Waits return at once while `is_shut_down` is
  /// true.
  WaitSet(myelin_node *node, int32_t strategy, const std::atomic<bool> &is_shut_down);
  ~WaitSet();
  WaitSet(const WaitSet &) = delete;
  WaitSet &operator=(const WaitSet &) = delete;

  /// Implements rmw_wait.
  rmw_ret_t wait(rmw_subscriptions_t *subscriptions, rmw_guard_conditions_t *guard_conditions,
                 rmw_services_t *services, rmw_clients_t *clients, rmw_events_t *events,
                 const rmw_time_t *timeout);

  /// Ends the wait in progress, or the next one if there is none. Any thread.
  void wake() { myelin_guard_condition_trigger(guard_); }

  /// Detaches a reader. Returns false if a wait is in progress.
  bool release(Reader &reader);
  /// Detaches a reader that the listener serves from now on. A wait in progress continues with the reader's trigger.
  void lend(Reader &reader);
  /// Detaches a reader that is about to be closed.
  void forget(Reader &reader);

 private:
  friend class Trigger;

  /// Takes the lock from a waiting thread for the lifetime of this object. The wait is interrupted and continues
  /// afterwards.
  class Interruption {
   public:
    explicit Interruption(WaitSet &set);
    ~Interruption();

   private:
    WaitSet &set_;
    std::unique_lock<std::mutex> lock_;
  };

  bool attach(Reader &reader, std::unique_lock<std::mutex> &lock);
  void detach(Reader &reader);
  /// Detaches a trigger that is being destroyed. The caller has the lock by an Interruption.
  void forget(Trigger &trigger);
  void detach_others();
  void attach_triggers();
  bool is_pending() const;
  myelin_code wait_once(uint64_t limit_ns);

  const std::atomic<bool> &is_shut_down_;
  myelin_wait_set *set_ = nullptr;
  /// Ends a wait. Its key is 0.
  myelin_guard_condition *guard_ = nullptr;
  std::atomic<bool> is_waiting_{false};
  /// A wait holds the mutex. `wanted_` counts the interruptions that want it.
  std::mutex mutex_;
  std::atomic<uint32_t> wanted_{0};
  std::condition_variable is_unwanted_;
  std::unordered_map<uint64_t, Reader *> attached_;
  uint64_t last_key_ = 0;
  /// Number of the current wait. Each reader of the wait has it in `asked_`.
  uint64_t round_ = 0;
  /// The readers and triggers of the current wait. An entry is NULL if its object was destroyed meanwhile. For a
  /// reader that the listener serves, the wait uses its trigger.
  std::vector<Reader *> asked_;
  std::vector<Trigger *> requested_triggers_;
  std::vector<Trigger *> triggers_;
  std::vector<uint64_t> keys_;
};

}  // namespace rmw_myelin
