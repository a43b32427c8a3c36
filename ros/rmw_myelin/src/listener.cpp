#include "listener.hpp"

#include <exception>

#include "reader.hpp"

namespace rmw_myelin {
namespace {

/// Key of the guard that ends the thread's waits.
constexpr uint64_t guard_key = 0;

/// Runs `work` and logs its exception, so that the thread continues. Unlocks for the logging.
template <typename Work>
void log_exceptions(std::unique_lock<std::mutex> &lock, Work work) {
  try {
    work();
  } catch (const std::exception &error) {
    const bool is_locked = lock.owns_lock();
    if (is_locked) lock.unlock();
    RCUTILS_LOG_ERROR_NAMED(identifier, "samples may be late: %s", error.what());
    if (is_locked) lock.lock();
  }
}

}  // namespace

Listener::~Listener() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
    }
    myelin_guard_condition_trigger(guard_);
    thread_.join();
  }
  if (guard_ != nullptr) myelin_guard_condition_close(guard_);
  if (set_ != nullptr) myelin_wait_set_close(set_);
}

bool Listener::start() {
  if (thread_.joinable()) return true;
  if (set_ == nullptr && myelin_wait_set_open(node_, &set_) != MYELIN_OK) return false;
  if (guard_ == nullptr && myelin_wait_set_guard_condition(set_, guard_key, &guard_) != MYELIN_OK) return false;
  thread_ = start_thread([this] { run(); });
  return true;
}

rmw_ret_t Listener::add(Reader &reader) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (reader.is_listened_to()) return RMW_RET_OK;
  if (!start()) return fail(MYELIN_ERROR_TOO_MANY, "cannot start the thread that takes samples");
  readers_.emplace(++last_key_, &reader);
  joining_.push_back(last_key_);
  reader.join_listener(last_key_);
  myelin_guard_condition_trigger(guard_);
  return RMW_RET_OK;
}

void Listener::remove(Reader &reader) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t key = reader.key_;
  readers_.erase(key);
  // A closed subscriber stays in the set until its key is removed.
  leaving_.push_back(key);
  myelin_guard_condition_trigger(guard_);
  if (std::this_thread::get_id() == thread_.get_id()) return;  // called from a callback
  is_taken_.wait(lock, [&] { return current_ != &reader; });
}

void Listener::resume(Reader &reader) {
  const std::lock_guard<std::mutex> lock(mutex_);
  joining_.push_back(reader.key_);
  myelin_guard_condition_trigger(guard_);
}

void Listener::change(std::unique_lock<std::mutex> &lock) {
  std::string failures;
  for (const uint64_t key : joining_) {
    const auto found = readers_.find(key);
    if (found == readers_.end()) continue;
    Reader &reader = *found->second;
    if (myelin_wait_set_add(set_, reader.subscriber_, key) != MYELIN_OK) {
      failures += reader.endpoint().topic + ": no samples are taken any more: " + myelin_error_message() + "; ";
    }
  }
  for (const uint64_t key : leaving_) myelin_wait_set_remove(set_, key);
  joining_.clear();
  leaving_.clear();
  if (failures.empty()) return;
  lock.unlock();
  RCUTILS_LOG_ERROR_NAMED(identifier, "%s", failures.c_str());
  lock.lock();
}

void Listener::run() {
  std::vector<uint64_t> keys;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_ending_) {
    log_exceptions(lock, [&] { change(lock); });
    log_exceptions(lock, [&] { keys.resize(readers_.size() + 1); });
    lock.unlock();
    size_t count = 0;
    const myelin_code code =
        myelin_wait_set_wait(set_, MYELIN_FOREVER, keys.data(), keys.size(), &count);
    if (code < 0) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "callbacks are not called any more: %s", myelin_error_message());
      return;
    }
    lock.lock();
    for (size_t at = 0; at < count; ++at) {
      const auto found = readers_.find(keys[at]);
      if (found == readers_.end()) continue;
      current_ = found->second;
      lock.unlock();
      bool goes_on = true;
      log_exceptions(lock, [&] { goes_on = current_->listen(); });
      lock.lock();
      // Remove it right away. If the reader has room again, it is in `joining_` already.
      if (!goes_on) myelin_wait_set_remove(set_, keys[at]);
      current_ = nullptr;
      is_taken_.notify_all();
    }
  }
}

}  // namespace rmw_myelin
