#include "callback.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "support.hpp"

namespace rmw_myelin {
namespace {

/// Longest wait for a call in progress when a callback is replaced. A call that waits for a lock of the waiting thread
/// never returns.
constexpr std::chrono::seconds return_max{1};

}  // namespace

bool Callback::add(size_t times) {
  const Lock lock(mutex_);
  uncalled_ += times;
  return function_ != nullptr;
}

void Callback::deliver() {
  Lock lock(mutex_);
  deliver(lock);
}

void Callback::deliver(Lock &lock) {
  if (caller_ != std::thread::id()) return;
  while (function_ != nullptr && uncalled_ > 0) {
    const auto function = function_;
    const void *const user_data = user_data_;
    const size_t times = std::exchange(uncalled_, 0);
    caller_ = std::this_thread::get_id();
    lock.unlock();
    try {
      function(user_data, times);
    } catch (...) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "a callback has thrown an exception, which is ignored");
    }
    lock.lock();
    caller_ = std::thread::id();
    ++returned_;
    has_returned_.notify_all();
  }
}

void Callback::set(rmw_event_callback_t function, const void *user_data, size_t times_max) {
  Lock lock(mutex_);
  function_ = function;
  user_data_ = user_data;
  uncalled_ = std::min(uncalled_, times_max);
  const size_t returned = returned_;
  const auto has_returned = [&] { return caller_ == std::thread::id() || returned_ != returned; };
  if (caller_ != std::this_thread::get_id() && !has_returned_.wait_for(lock, return_max, has_returned)) {
    lock.unlock();
    RCUTILS_LOG_ERROR_NAMED(identifier,
                            "a callback was unset, but a call of it has not returned for 1 s; it may wait for a lock "
                            "of the thread that unsets it: unset callbacks without that lock");
    lock.lock();
  }
  deliver(lock);
}

void Callback::forget() {
  const Lock lock(mutex_);
  uncalled_ = 0;
}

}  // namespace rmw_myelin
