// The thread of a context that calls back when something has come, and follows the graph.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "support.hpp"

namespace rmw_myelin {

class Reader;

/// Takes samples ahead for readers whose user wants to be called. Its thread runs from the first use on.
/// Any thread may use it.
class Listener {
 public:
  explicit Listener(myelin_node *node) : node_(node) {}
  ~Listener();
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  /// From now on it listens to the reader. It returns when that is so.
  rmw_ret_t add(Reader &reader);
  /// From now on it does not. The reader may be closed then.
  void remove(Reader &reader);

 private:
  /// Has the thread call `work` between two waits, and waits for it.
  void call(std::function<void()> work);
  bool start();
  void run();

  myelin_node *node_;
  myelin_wait_set *set_ = nullptr;
  myelin_guard *guard_ = nullptr;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable done_;
  std::function<void()> work_;
  bool is_ending_ = false;
  /// The thread's own.
  std::unordered_map<uint64_t, Reader *> readers_;
  uint64_t last_key_ = 0;
};

}  // namespace rmw_myelin
