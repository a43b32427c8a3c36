// Publishes samples for publishers, services and clients.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cdr.hpp"
#include "endpoint.hpp"
#include "peers.hpp"

namespace rmw_myelin {

struct Node;

/// A publisher of the library. Any thread may use it. A publisher of replies to one client takes its events only when
/// its matches are queried.
class Writer : public EventSource {
 public:
  /// Both throw a std::runtime_error. A publisher of replies to one client has no node, because `rmw_destroy_node` may
  /// leave its service behind.
  Writer(Node &node, Endpoint endpoint);
  Writer(rmw_context_impl_t &context, Endpoint way_back);
  ~Writer() override;
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  /// Encodes a message into shared memory and publishes it.
  rmw_ret_t publish(const void *message, const cdr::RequestHeader *header = nullptr);
  /// Publishes a message that is encoded already.
  rmw_ret_t publish_serialized(const uint8_t *data, size_t bytes);

  /// Whether messages can be loaned: their CDR must equal their memory.
  bool can_loan() const { return endpoint_.type.plan->plain_message.has_value(); }
  /// Lends memory for a message in shared memory.
  rmw_ret_t borrow(void **message);
  rmw_ret_t publish_borrowed(void *message);
  rmw_ret_t give_back(void *message);

  /// Number of subscribers.
  size_t matched();
  /// Whether some subscriber was incompatible.
  bool has_refused() const { return peers_.has_refused(); }
  /// Waits until `matched` is not 0. Returns RMW_RET_TIMEOUT if the time is over. Another thread that publishes waits
  /// until this wait has ended.
  rmw_ret_t wait_for_match(uint64_t limit_ns);
  rmw_ret_t assert_liveliness();
  /// Waits for the acknowledgements of subscribers on other hosts.
  rmw_ret_t wait_for_acknowledgements(uint64_t limit_ns);

  const Endpoint &endpoint() const { return endpoint_; }
  rmw_context_impl_t &context() { return context_; }
  Events &events() override { return events_; }
  uint64_t poll_events() override;
  void close() override;

 private:
  /// Calls the library under the lock. Then takes events if the graph's thread has tried in vain meanwhile.
  template <typename Call>
  rmw_ret_t use(Call call);
  bool take_loan(void *message, myelin_loan &loan);
  uint64_t take_events();
  /// Takes all pending events of the library. Called with the lock held.
  void take_pending();
  /// Restarts the deadline and the lease. Called for each publish and each assertion of liveliness.
  void moved();
  /// Counts missed deadlines and expired leases. Returns the time of the next one.
  uint64_t count_missed(uint64_t now_ns);

  Writer(rmw_context_impl_t &context, Node *node, Endpoint endpoint);

  rmw_context_impl_t &context_;
  Node *const node_;
  Endpoint endpoint_;
  myelin_publisher *publisher_ = nullptr;
  Events events_;
  Peers peers_;
  /// A publish holds it even while it blocks. Taking events must not wait for it.
  std::mutex mutex_;
  /// Loans by the address of their message.
  std::unordered_map<void *, myelin_loan> loans_;

  std::atomic<bool> is_event_wanted_{false};
  std::mutex pending_mutex_;
  std::vector<std::pair<myelin_event, std::string>> pending_;
  /// Held from taking events until they are counted, so that they are counted in order.
  std::mutex events_mutex_;

  // Longest silence; MYELIN_FOREVER: no limit.
  uint64_t deadline_ns_ = MYELIN_FOREVER;
  uint64_t lease_ns_ = MYELIN_FOREVER;
  /// Times of the next deadline and of the end of the lease; 0 before the first publish.
  std::atomic<uint64_t> deadline_at_ns_{0};
  std::atomic<uint64_t> lease_at_ns_{0};
};

}  // namespace rmw_myelin
