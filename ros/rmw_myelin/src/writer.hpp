// What publishers, services and clients publish samples by.
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

/// A publisher of the library. Any thread may use it. Of one that is a client's way back nobody takes the events but who
/// asks for its matches.
class Writer : public EventSource {
 public:
  /// Throws a std::runtime_error. A client's way back is no node's: `rmw_destroy_node` may leave its service behind.
  Writer(Node &node, Endpoint endpoint);
  Writer(rmw_context_impl_t &context, Endpoint way_back);
  ~Writer() override;
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  /// Serialises a message into shared memory, and publishes it.
  rmw_ret_t publish(const void *message, const cdr::RequestHeader *header = nullptr);
  /// Publishes what is serialised already.
  rmw_ret_t publish_serialized(const uint8_t *data, size_t bytes);

  /// Whether messages can be lent: their CDR is their memory.
  bool can_loan() const { return endpoint_.type.plan->plain_message.has_value(); }
  /// Memory for a message whose CDR is its memory, in shared memory.
  rmw_ret_t borrow(void **message);
  rmw_ret_t publish_borrowed(void *message);
  rmw_ret_t give_back(void *message);

  /// How many subscribers it is matched with.
  size_t matched();
  rmw_ret_t assert_liveliness();
  /// By those that are not on this host.
  rmw_ret_t wait_for_acknowledgements(uint64_t limit_ns);

  const Endpoint &endpoint() const { return endpoint_; }
  rmw_context_impl_t &context() { return context_; }
  Events &events() override { return events_; }
  uint64_t poll_events() override;
  void close() override;

 private:
  /// Has the library do it; and takes events then, if the graph's thread could not meanwhile.
  template <typename Call>
  rmw_ret_t use(Call call);
  bool take_loan(void *message, myelin_loan &loan);
  uint64_t take_events();
  /// Takes what events there are. Under the lock.
  void hear();
  /// What has been published or asserted just now is no missed deadline, and a sign of life.
  void moved();
  /// Counts deadlines and leases that have passed. When the next one does.
  uint64_t count_missed(uint64_t now_ns);

  Writer(rmw_context_impl_t &context, Node *node, Endpoint endpoint);

  rmw_context_impl_t &context_;
  Node *const node_;
  Endpoint endpoint_;
  myelin_publisher *publisher_ = nullptr;
  Events events_;
  Peers peers_;
  /// Held by a publish, also while that waits: who takes events must not wait for it.
  std::mutex mutex_;
  /// By the address that was lent.
  std::unordered_map<void *, myelin_loan> loans_;

  std::atomic<bool> is_event_wanted_{false};
  std::mutex heard_mutex_;
  std::vector<std::pair<myelin_event, std::string>> heard_;
  /// Held by who takes events until they are counted: in their order.
  std::mutex events_mutex_;

  // How long it may be silent; MYELIN_FOREVER: it may.
  uint64_t deadline_ns_ = MYELIN_FOREVER;
  uint64_t lease_ns_ = MYELIN_FOREVER;
  /// When the next deadline or lease passes. 0: nothing has been published yet.
  std::atomic<uint64_t> deadline_at_ns_{0};
  std::atomic<uint64_t> lease_at_ns_{0};
};

}  // namespace rmw_myelin
