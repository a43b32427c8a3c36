#include "listener.hpp"

#include <algorithm>

#include "reader.hpp"

namespace rmw_myelin {
namespace {

/// Of the guard that ends the thread's waits.
constexpr uint64_t guard_key = 0;

}  // namespace

Listener::~Listener() {
  if (thread_.joinable()) {
    call([this] { is_ending_ = true; });
    thread_.join();
  }
  if (guard_ != nullptr) myelin_guard_close(guard_);
  if (set_ != nullptr) myelin_wait_set_close(set_);
}

bool Listener::start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (thread_.joinable()) return true;
  if (set_ == nullptr && myelin_wait_set_open(node_, &set_) != MYELIN_OK) return false;
  if (guard_ == nullptr && myelin_wait_set_guard(set_, guard_key, &guard_) != MYELIN_OK) return false;
  thread_ = start_thread([this] { run(); });
  return true;
}

void Listener::call(std::function<void()> work) {
  if (std::this_thread::get_id() == thread_.get_id()) return work();  // from a call back
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return !work_; });
  bool is_done = false;
  work_ = [&] {
    work();
    is_done = true;
  };
  myelin_guard_trigger(guard_);
  done_.wait(lock, [&] { return is_done; });
}

rmw_ret_t Listener::add(Reader &reader) {
  if (!start()) return fail(MYELIN_ERROR_TOO_MANY, "the thread that calls back");
  if (WaitSet *set = reader.set_) {
    if (!set->release(reader)) {
      RMW_SET_ERROR_MSG("a thread waits for it meanwhile");
      return RMW_RET_ERROR;
    }
  }
  myelin_code code = MYELIN_OK;
  call([&] {
    code = myelin_wait_set_add(set_, reader.subscriber_, ++last_key_);
    if (code != MYELIN_OK) return;
    reader.key_ = last_key_;
    reader.is_listened_to_.store(true, std::memory_order_release);
    readers_.emplace(last_key_, &reader);
  });
  return code == MYELIN_OK ? RMW_RET_OK : fail(code, "the thread that calls back");
}

void Listener::remove(Reader &reader) {
  call([&] {
    myelin_wait_set_remove(set_, reader.key_);
    readers_.erase(reader.key_);
    reader.is_listened_to_.store(false, std::memory_order_release);
  });
}

void Listener::run() {
  std::vector<uint64_t> keys;
  for (;;) {
    keys.resize(readers_.size() + 1);
    size_t count = 0;
    const myelin_code code =
        myelin_wait_set_wait(set_, MYELIN_FOREVER, keys.data(), keys.size(), &count);
    if (code < 0) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "callbacks have ended: %s", myelin_error_message());
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (work_) {
        work_();
        work_ = nullptr;
        done_.notify_all();
      }
      if (is_ending_ || code < 0) return;
    }
    for (size_t at = 0; at < count; ++at) {
      const auto found = readers_.find(keys[at]);
      if (found != readers_.end()) found->second->listen();
    }
  }
}

}  // namespace rmw_myelin
