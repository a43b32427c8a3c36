// Takes samples for subscriptions, services and clients.
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

/// A subscriber of the library, with the samples that were taken ahead of the user. Any thread may use it.
///
/// It is attached to the wait set that waits for it. If two wait sets wait for it, or its user has set a callback, the
/// context's listener takes its samples from then on, and wait sets wait for `arrived`.
class Reader : public EventSource {
 public:
  /// Returns false if the reader should drop the sample.
  using Filter = std::function<bool(const Sample &)>;

  /// Throws a std::runtime_error. `filter` may be empty.
  Reader(Node &node, Endpoint endpoint, Filter filter);
  ~Reader() override;
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  /// Takes the next sample. Returns RMW_RET_OK without one too; `taken` tells the difference.
  rmw_ret_t take(Sample &sample, bool &taken);
  /// Number of publishers.
  size_t matched();

  /// Has the listener's thread call `callback` for each new sample. NULL unsets it.
  rmw_ret_t set_callback(rmw_event_callback_t callback, const void *user_data);

  /// Announces a reply. From another host it arrives among many replies to other clients. Until it arrives, samples are
  /// taken regularly, even if no thread waits: otherwise the replies to others push it out of the queue.
  void expect();

  const Endpoint &endpoint() const { return endpoint_; }
  Node &node() { return node_; }
  Events &events() override { return events_; }
  uint64_t poll_events() override;
  void close() override;
  /// Whether this publisher is matched.
  bool has_peer(uint64_t publisher) {
    poll_events();
    return peers_.has(publisher);
  }
  /// Publishers on this host, by ascending id. `peers_version` changes whenever a peer comes or goes.
  std::vector<uint64_t> publishers_here() { return peers_.publishers_here(); }
  uint64_t peers_version() const { return peers_.version(); }

 private:
  friend class Listener;
  friend class WaitSet;

  /// Takes the next sample that is accepted by the peers and the filter. Looks at `looks_max` samples at most.
  bool take_from_library(Sample &sample, myelin_code &code);
  /// Takes samples ahead, `looks_max` at most. Returns how many it has kept. The listener passes `is_paused`, which
  /// becomes true if there is no room for more: it then stops listening until a take has made room.
  size_t take_all_ahead(bool *is_paused = nullptr);
  /// Takes one sample ahead. The library may report a sample that the filter drops, or memory that is not mapped yet.
  /// Returns whether a sample is there.
  bool take_ahead();
  bool has_taken() const { return taken_count_.load(std::memory_order_acquire) > 0; }
  bool is_listened_to() const { return is_listened_to_.load(std::memory_order_acquire); }
  Trigger &arrived() { return arrived_; }
  /// Has the listener take its samples from now on. Sets the error and returns false if that fails.
  bool share();
  /// The reader leaves its wait set. Called by the listener.
  void join_listener(uint64_t key);
  /// Takes all samples ahead and calls back. Returns false if the listener should stop until `Listener::resume`. Called
  /// by the listener's thread.
  bool listen();
  /// Takes samples ahead while a reply is expected. Returns the time of the next call. Called by the graph's thread.
  uint64_t drain(uint64_t now_ns);
  /// Appends to the samples taken ahead. With `KEEP_LAST` the oldest is dropped beyond the depth. With `KEEP_ALL` the
  /// caller has checked `is_full`.
  void keep(Sample sample);
  /// With `KEEP_ALL`: no room, so new samples stay with their publishers.
  bool is_full() const;
  uint64_t take_events();
  void count_lost(uint64_t samples);

  // A wait reads these fields of each of its readers, so they lie together.
  std::atomic<size_t> taken_count_{0};
  std::atomic<bool> is_listened_to_{false};
  std::atomic<WaitSet *> set_{nullptr};
  // Key in the wait set that it is attached to, or in the listener.
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
  /// It was full, and the listener has stopped listening to it.
  bool is_paused_ = false;
  /// Pending while there are samples taken ahead, if the listener takes them.
  Trigger arrived_;
  Callback callback_;

  /// Number of replies to come, and whether the graph's thread looks for them: at which time next, and until when at
  /// least.
  std::atomic<uint64_t> expected_{0};
  std::atomic<bool> is_draining_{false};
  uint64_t drain_at_ns_ = 0;
  uint64_t drain_until_ns_ = 0;
  /// Held from taking events until they are counted, so that they are counted in order.
  std::mutex events_mutex_;
};

}  // namespace rmw_myelin
