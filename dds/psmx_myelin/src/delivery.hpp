// The thread that takes what comes for an instance's readers and stores it in them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "departure.hpp"
#include "myelin.h"

namespace psmx_myelin {

class Reader;

class Delivery {
 public:
  /// Throws a std::runtime_error.
  Delivery(myelin_node *node, myelin_wait wait);
  /// Ends the thread, and waits for it.
  ~Delivery();
  Delivery(const Delivery &) = delete;
  Delivery &operator=(const Delivery &) = delete;

  /// The reader is the thread's from now on. Any thread.
  void add(std::unique_ptr<Reader> reader);
  /// Has the thread drop the reader, at once or after what it is storing in it just now; does not wait. Any
  /// thread, also from a listener that the thread is calling.
  void remove(Reader &reader);
  /// Has the thread store what a writer has written that DDS has lost, and waits for it, as long as it is not for
  /// too long. Any thread.
  void depart(const std::shared_ptr<Departure> &departure);

 private:
  void run();
  /// Takes over what other threads have asked for; whether to go on.
  bool follow();
  /// Has what departing writers have written stored, and tells those who wait for it.
  void see_off();
  /// Tries again what could not be stored; after how many ns it is to do so again.
  uint64_t retry();
  /// Waits for readers for which something has come, as the configuration says.
  myelin_code wait(uint64_t limit_ns, uint64_t *keys, size_t &count);

  myelin_wait_set *set_ = nullptr;
  myelin_guard *guard_ = nullptr;
  std::thread thread_;

  /// Guards what other threads ask for.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> added_;
  std::vector<Reader *> removed_;
  std::vector<std::shared_ptr<Departure>> departures_;
  std::condition_variable has_stored_;
  bool is_ending_ = false;

  /// The thread's alone, by the keys of the wait set.
  std::unordered_map<uint64_t, std::unique_ptr<Reader>> readers_;
  /// Of which not all has been stored yet.
  std::vector<std::shared_ptr<Departure>> departing_;
  /// Whether a reader may have samples of writers that DDS has not found yet.
  bool is_waiting_ = false;
  uint64_t retry_ns_ = 0;
  /// Whether it looks for a while before it sleeps, and lets other threads run meanwhile; how many waits sleep at once
  /// before the next look, and how many will if that is in vain; how many looks in a row were not.
  const bool gives_way_;
  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 1;
  uint32_t hits_ = 0;
};

}  // namespace psmx_myelin
