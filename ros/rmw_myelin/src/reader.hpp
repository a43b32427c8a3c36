// What subscriptions, services and clients take samples by.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "endpoint.hpp"
#include "peers.hpp"
#include "rmw/event_callback_type.h"
#include "sample.hpp"
#include "wait.hpp"

namespace rmw_myelin {

struct Node;

/// A subscriber of the library, with what of its samples has been taken ahead. Any thread may use it.
///
/// It is attached to the wait set that waits for it. Where two wait for it, or its user is to be called back, the
/// context's listener takes its samples as they come, until it is closed, and wait sets wait for `arrived`.
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

  /// Has the listener's thread call `callback` for each sample that comes, or for none any more.
  rmw_ret_t set_callback(rmw_event_callback_t callback, const void *user_data);

  /// A sample is to come; from another host among many that are not for it. Until it has, what comes is taken often
  /// enough, also while nobody waits for it: what is not for it must not crowd it out.
  void expect();

  const Endpoint &endpoint() const { return endpoint_; }
  Node &node() { return node_; }
  Events &events() override { return events_; }
  uint64_t poll_events() override;
  void close() override;
  /// Whether this publisher is there.
  bool has_peer(uint64_t publisher) {
    poll_events();
    return peers_.has(publisher);
  }
  /// Its publishers on this host, in order; and a number that is another one when they are others.
  std::vector<uint64_t> publishers_here() { return peers_.publishers_here(); }
  uint64_t peers_version() const { return peers_.version(); }

 private:
  friend class Listener;
  friend class WaitSet;

  /// The next one that is for it. It looks at so many at most.
  bool take_from_library(Sample &sample, myelin_code &code);
  /// Takes ahead what is there, so many at most. How many it has kept. By the listener: whether there is no room for
  /// more, so that it is to listen no longer until a take has made room.
  size_t take_all_ahead(bool *is_paused = nullptr);
  /// Takes a sample ahead, if there is one for it: the library's word that there is something may be about
  /// samples of others, or about memory that is still on its way. Whether one is there.
  bool take_ahead();
  bool has_taken() const { return taken_count_.load(std::memory_order_acquire) > 0; }
  bool is_listened_to() const { return is_listened_to_.load(std::memory_order_acquire); }
  Trigger &arrived() { return arrived_; }
  /// Has the listener listen to it. False, and the error is set, if that cannot be.
  bool share();
  /// By the listener: it leaves its wait set.
  void join_listener(uint64_t key);
  /// By the listener's thread: takes all there is ahead, and calls back. False: it is to listen no longer, until
  /// `Listener::resume`.
  bool listen();
  /// Takes what comes in among what is not for it. When it is to do so again.
  uint64_t drain(uint64_t now_ns);
  /// Ahead of the takes; the oldest goes when there are more than the depth. What keeps all has to have room.
  void keep(Sample sample);
  /// Of one that keeps all: what comes has to stay with its publishers.
  bool is_full() const;
  uint64_t take_events();
  void count_lost(uint64_t samples);

  // What a wait looks at of each reader that it is given lies together.
  std::atomic<size_t> taken_count_{0};
  std::atomic<bool> is_listened_to_{false};
  std::atomic<WaitSet *> set_{nullptr};
  // Of the wait set that it is attached to, or of the listener.
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
  /// It was full, and the listener does not listen to it.
  bool is_paused_ = false;
  /// Pending, of one that is listened to, while samples are taken ahead.
  Trigger arrived_;
  Callback callback_;

  /// How many samples are to come, and whether the graph's thread looks for them: when next, and how long at least.
  std::atomic<uint64_t> expected_{0};
  std::atomic<bool> is_draining_{false};
  uint64_t drain_at_ns_ = 0;
  uint64_t drain_until_ns_ = 0;
  /// Held by who takes events until they are counted: in their order.
  std::mutex events_mutex_;
};

}  // namespace rmw_myelin
