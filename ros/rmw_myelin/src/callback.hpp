// A function of the user that is called when something has arrived.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "rmw/event_callback_type.h"

namespace rmw_myelin {

/// Calls a function of the user, one call at a time. It holds no lock during a call, so the function may call all of
/// rmw, and may replace or unset itself. Occurrences without a function are counted and reported to the next function.
/// Any thread may use this class.
class Callback {
 public:
  /// Counts `times` occurrences. Returns whether a function is set; the caller then calls `deliver`.
  bool add(size_t times);
  /// Calls the function for the occurrences that it has not been called for. If a call is in progress, the thread of
  /// that call does this instead.
  void deliver();
  /// Sets the function, or unsets it with NULL. Calls the new function for earlier occurrences, `times_max` at most.
  /// The previous function is not called again. Waits up to 1 s for a call of it in another thread; if the call has not
  /// returned by then, logs an error.
  void set(rmw_event_callback_t function, const void *user_data, size_t times_max = SIZE_MAX);
  /// Drops the count: the user has taken everything.
  void forget();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void deliver(Lock &lock);

  std::mutex mutex_;
  std::condition_variable has_returned_;
  rmw_event_callback_t function_ = nullptr;
  const void *user_data_ = nullptr;
  size_t uncalled_ = 0;
  /// The thread of the call in progress; no thread if there is none.
  std::thread::id caller_;
  /// Number of calls that have returned.
  size_t returned_ = 0;
};

}  // namespace rmw_myelin
