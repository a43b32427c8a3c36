// The thread that takes the samples for all readers of an instance and stores them in the readers.
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
  /// Ends the thread, and waits for its end.
  ~Delivery();
  Delivery(const Delivery &) = delete;
  Delivery &operator=(const Delivery &) = delete;

  /// Hands a reader over to the thread. Any thread may call it.
  void add(std::unique_ptr<Reader> reader);
  /// Has the thread drop a reader, at the latest after the sample that it is storing. Does not wait. Any thread may
  /// call it, also a listener that the thread has called.
  void remove(Reader &reader);
  /// Has the thread store all samples of a writer that DDS has lost. Waits for this, 1 s at most. Any thread may call
  /// it.
  void depart(const std::shared_ptr<Departure> &departure);

 private:
  void run();
  /// Applies the requests of other threads. Returns false if the thread should end.
  bool follow();
  /// Stores the samples of lost writers, and notifies the threads that wait for this.
  void see_off();
  /// Tries again to store the samples of writers that DDS had not found. Returns after how many ns to call it again.
  uint64_t retry();
  /// Waits for samples, with the configured strategy. Writes the keys of the readers that have some.
  myelin_code wait(uint64_t limit_ns, uint64_t *keys, size_t &count);

  myelin_wait_set *set_ = nullptr;
  myelin_guard_condition *guard_ = nullptr;
  std::thread thread_;

  /// Guards the requests of other threads.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> added_;
  std::vector<Reader *> removed_;
  std::vector<std::shared_ptr<Departure>> departures_;
  std::condition_variable has_stored_;
  bool is_ending_ = false;

  /// Readers by their key in the wait set. For the thread only.
  std::unordered_map<uint64_t, std::unique_ptr<Reader>> readers_;
  /// Departures whose samples are not all stored yet.
  std::vector<std::shared_ptr<Departure>> departing_;
  /// Whether a reader may have samples of a writer that DDS has not found yet.
  bool is_waiting_ = false;
  uint64_t retry_ns_ = 0;
  /// Whether a wait polls for a while before it sleeps, and yields to other threads meanwhile. `sleeps_left_`: waits
  /// that sleep at once before the next poll. `sleeps_`: as many follow if that poll finds nothing. `hits_`: successful
  /// polls in a row.
  const bool gives_way_;
  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 1;
  uint32_t hits_ = 0;
};

}  // namespace psmx_myelin
