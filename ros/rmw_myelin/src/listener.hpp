// The thread of a context that takes samples as they arrive. It serves readers whose user has set a callback, and
// readers that several wait sets wait for: the library's subscriber can be in one wait set only.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "support.hpp"

namespace rmw_myelin {

class Reader;

/// Takes samples ahead of the user. Its thread starts with the first reader. Any thread may use it.
class Listener {
 public:
  explicit Listener(myelin_node *node) : node_(node) {}
  ~Listener();
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  /// Takes the reader's samples from now on. The reader leaves its wait set. Sets the error if the thread cannot start.
  rmw_ret_t add(Reader &reader);
  /// Takes samples of a reader again that was full and has room now.
  void resume(Reader &reader);
  /// Stops taking the reader's samples. On return the reader may be closed.
  void remove(Reader &reader);

 private:
  bool start();
  void run();
  /// Applies the requests since the last wait. Called with the lock, which it releases to log failures.
  void change(std::unique_lock<std::mutex> &lock);

  myelin_node *node_;
  myelin_wait_set *set_ = nullptr;
  myelin_guard_condition *guard_ = nullptr;
  std::thread thread_;

  std::mutex mutex_;
  /// Readers by key. `joining_` has the keys that the thread has yet to add to its wait set, `leaving_` those that it
  /// has yet to remove.
  std::unordered_map<uint64_t, Reader *> readers_;
  std::vector<uint64_t> joining_;
  std::vector<uint64_t> leaving_;
  uint64_t last_key_ = 0;
  /// The reader whose samples the thread is taking.
  Reader *current_ = nullptr;
  std::condition_variable is_taken_;
  bool is_ending_ = false;
};

}  // namespace rmw_myelin
