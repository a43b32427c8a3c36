// Waiting: guard conditions, and wait sets on the library's wait set.
//
// rmw_wait is given all that it is to wait for each time. A wait set keeps what it was given before
// attached, so that the same again costs a look at each, and what is different is attached or detached.
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

/// Something that is pending or not, and ends the waits of the sets that it is attached to: a guard
/// condition, an event, samples that a listener has taken. Any thread may use it.
class Trigger {
 public:
  Trigger() = default;
  ~Trigger();
  Trigger(const Trigger &) = delete;
  Trigger &operator=(const Trigger &) = delete;

  /// Becomes pending, and wakes who waits.
  void fire();
  /// Whether it is pending.
  bool is_pending() const { return pending_.load(std::memory_order_acquire); }
  /// Whether it was pending; it is not any more.
  bool clear() { return pending_.exchange(false, std::memory_order_acq_rel); }

 private:
  friend class WaitSet;
  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  std::vector<WaitSet *> waiters_;
};

/// How wait sets wait, by `MYELIN_WAIT`; as the library has it if that is not set.
int32_t wait_strategy();

/// Waits for readers and triggers of its context. One thread at a time waits with it; others may take readers
/// and triggers out of it meanwhile.
class WaitSet {
 public:
  /// Throws a std::runtime_error: the library has no more. Once `is_shut_down`, waits return at once.
  WaitSet(myelin_node *node, int32_t strategy, const std::atomic<bool> &is_shut_down);
  ~WaitSet();
  WaitSet(const WaitSet &) = delete;
  WaitSet &operator=(const WaitSet &) = delete;

  /// rmw_wait.
  rmw_ret_t wait(rmw_subscriptions_t *subscriptions, rmw_guard_conditions_t *guard_conditions,
                 rmw_services_t *services, rmw_clients_t *clients, rmw_events_t *events,
                 const rmw_time_t *timeout);

  /// Ends the wait that is under way, or else the next one. Any thread.
  void wake() { myelin_guard_trigger(guard_); }

  /// Lets go of a reader, unless a thread waits for it meanwhile.
  bool release(Reader &reader);
  /// Lets go of a reader that the listener listens to from now on: a wait for it goes on by its trigger.
  void lend(Reader &reader);
  /// Lets go of a reader that is about to be closed.
  void forget(Reader &reader);

 private:
  friend class Trigger;

  /// Takes the lock from a thread that waits, for as long as it lives: its wait is interrupted, and goes on then.
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
  /// A trigger is about to end. An interruption has the lock.
  void forget(Trigger &trigger);
  void detach_others();
  void attach_triggers();
  bool is_pending() const;
  myelin_code wait_once(uint64_t limit_ns);

  const std::atomic<bool> &is_shut_down_;
  myelin_wait_set *set_ = nullptr;
  /// Ends a wait; its key is 0.
  myelin_guard *guard_ = nullptr;
  std::atomic<bool> is_waiting_{false};
  /// Held by a wait. How many interruptions want it.
  std::mutex mutex_;
  std::atomic<uint32_t> wanted_{0};
  std::condition_variable is_unwanted_;
  std::unordered_map<uint64_t, Reader *> attached_;
  uint64_t last_key_ = 0;
  /// Which wait this is: readers that are asked for have its number.
  uint64_t round_ = 0;
  /// All that are asked for, NULL for what has gone meanwhile; those that the listener listens to are waited for by
  /// their triggers.
  std::vector<Reader *> asked_;
  std::vector<Trigger *> asked_triggers_;
  std::vector<Trigger *> triggers_;
  std::vector<uint64_t> keys_;
};

}  // namespace rmw_myelin
