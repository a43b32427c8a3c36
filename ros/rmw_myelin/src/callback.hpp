// A function of the user's that is called when something has come.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "rmw/event_callback_type.h"

namespace rmw_myelin {

/// Calls back, one call at a time, with no lock of ours held: the function may use everything, and may replace
/// or unset itself. What happens while nobody is called is counted, and reported to who is set next. Any thread
/// may use it.
class Callback {
 public:
  /// It has happened so often. Whether there is a function; `deliver` calls it.
  bool add(size_t times);
  /// Calls the function for what it has not been called for yet, unless a call is under way: that goes on with it.
  void deliver();
  /// Sets the function, or NULL, and calls it for what has happened before, for `times_max` at most. The former
  /// one is not called any more, and no call of it is under way in another thread: if it does not return, an
  /// error in the log says so.
  void set(rmw_event_callback_t function, const void *user_data, size_t times_max = SIZE_MAX);
  /// What has happened has been looked at.
  void forget();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void deliver(Lock &lock);

  std::mutex mutex_;
  std::condition_variable has_returned_;
  rmw_event_callback_t function_ = nullptr;
  const void *user_data_ = nullptr;
  size_t uncalled_ = 0;
  /// Of the thread that calls; none otherwise.
  std::thread::id caller_;
  /// How many calls have returned.
  size_t returned_ = 0;
};

}  // namespace rmw_myelin
