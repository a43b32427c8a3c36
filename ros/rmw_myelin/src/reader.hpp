// What subscriptions, services and clients take samples by.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "endpoint.hpp"
#include "peers.hpp"
#include "rmw/event_callback_type.h"
#include "sample.hpp"
#include "wait.hpp"

namespace rmw_myelin {

struct Node;

/// A subscriber of the library, with what of its samples has been taken ahead. Any thread may use it.
class Reader : public EventSource {
 public:
  /// Drops a sample that is not for it.
  using Filter = std::function<bool(const Sample &)>;

  /// Throws a std::runtime_error. `filter` may be empty.
  Reader(Node &node, Endpoint endpoint, Filter filter);
  ~Reader() override;
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  /// The next sample, if there is one: RMW_RET_OK, and whether it was taken.
  rmw_ret_t take(Sample &sample, bool &taken);
  /// How many publishers it is matched with.
  size_t matched();

  /// Has a thread of the context's call `callback` for each sample that comes, or for none any more.
  rmw_ret_t set_callback(rmw_event_callback_t callback, const void *user_data);

  const Endpoint &endpoint() const { return endpoint_; }
  Node &node() { return node_; }
  Events &events() { return events_; }
  uint64_t poll_events() override;
  void close() override;
  /// Whether this publisher is there.
  bool has_peer(uint64_t publisher) {
    poll_events();
    return peers_.has(publisher);
  }

 private:
  friend class Listener;
  friend class WaitSet;

  bool take_from_library(Sample &sample, myelin_code &code);
  /// Takes a sample ahead, if there is one for it: the library's word that there is something may be about
  /// samples of others, or about memory that is still on its way. Whether one is there.
  bool take_ahead();
  bool has_taken() const { return taken_count_.load(std::memory_order_acquire) > 0; }
  bool is_listened_to() const { return is_listened_to_.load(std::memory_order_acquire); }
  Trigger &arrived() { return arrived_; }
  /// By the listener: takes all there is ahead, and calls back.
  void listen();
  /// Ahead of the takes; the oldest goes when there are more than the depth.
  void keep(Sample sample);
  void count_lost(uint64_t samples);

  // What a wait looks at of each reader that it is given lies together.
  std::atomic<size_t> taken_count_{0};
  std::atomic<bool> is_listened_to_{false};
  std::atomic<WaitSet *> set_{nullptr};
  // Of the wait set that it is attached to.
  uint64_t key_ = 0;
  uint64_t asked_ = 0;

  Node &node_;
  Endpoint endpoint_;
  Filter filter_;
  myelin_subscriber *subscriber_ = nullptr;
  Events events_;
  Peers peers_;

  std::mutex mutex_;
  std::deque<Sample> taken_;

  Trigger arrived_;
  std::mutex callback_mutex_;
  rmw_event_callback_t callback_ = nullptr;
  const void *user_data_ = nullptr;
  /// Taken ahead while nobody was called.
  size_t uncalled_ = 0;
};

}  // namespace rmw_myelin
