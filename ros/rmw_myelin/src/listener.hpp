// The thread of a context that takes samples as they come: for readers whose user is to be called back, and for
// those that several wait sets wait for, of which the library's subscriber can be in one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "support.hpp"

namespace rmw_myelin {

class Reader;

/// Takes samples ahead. Its thread runs from the first use on. Any thread may use it.
class Listener {
 public:
  explicit Listener(myelin_node *node) : node_(node) {}
  ~Listener();
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  /// From now on it listens to the reader, which leaves its wait set.
  rmw_ret_t add(Reader &reader);
  /// A reader that was full has room again.
  void resume(Reader &reader);
  /// From now on it does not. The reader may be closed then.
  void remove(Reader &reader);

 private:
  bool start();
  void run();
  /// What has been asked for since the last wait. Under the lock.
  void change(std::unique_lock<std::mutex> &lock);

  myelin_node *node_;
  myelin_wait_set *set_ = nullptr;
  myelin_guard *guard_ = nullptr;
  std::thread thread_;

  std::mutex mutex_;
  /// By their keys; and those among them that the thread has yet to watch, and keys that it is not to any more.
  std::unordered_map<uint64_t, Reader *> readers_;
  std::vector<uint64_t> joining_;
  std::vector<uint64_t> leaving_;
  uint64_t last_key_ = 0;
  /// The one whose samples the thread takes.
  Reader *current_ = nullptr;
  std::condition_variable is_taken_;
  bool is_ending_ = false;
};

}  // namespace rmw_myelin
