// What publishers, services and clients publish samples by.
#pragma once

#include <mutex>
#include <unordered_map>

#include "cdr.hpp"
#include "endpoint.hpp"
#include "event.hpp"

namespace rmw_myelin {

struct Node;

/// A publisher of the library. Any thread may use it.
class Writer {
 public:
  /// Throws a std::runtime_error.
  Writer(Node &node, Endpoint endpoint);
  ~Writer();
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  /// Serialises a message into shared memory, and publishes it.
  rmw_ret_t publish(const void *message, const cdr::RequestHeader *header = nullptr);
  /// Publishes what is serialised already.
  rmw_ret_t publish_serialized(const uint8_t *data, size_t bytes);

  /// Whether messages can be lent.
  bool can_loan() const { return false; }
  /// Memory for a message whose CDR is its memory, in shared memory.
  rmw_ret_t borrow(void **message);
  rmw_ret_t publish_borrowed(void *message);
  rmw_ret_t give_back(void *message);

  /// How many subscribers it is matched with.
  size_t matched();
  rmw_ret_t assert_liveliness();
  /// By those that are not on this host. Nobody publishes meanwhile.
  rmw_ret_t wait_for_acknowledgements(uint64_t limit_ns);

  const Endpoint &endpoint() const { return endpoint_; }
  Node &node() { return node_; }
  Events &events() { return events_; }
  /// Takes what the library has to tell of its matches.
  void poll_events();

 private:
  Node &node_;
  Endpoint endpoint_;
  myelin_publisher *publisher_ = nullptr;
  Events events_;
  std::mutex mutex_;
  /// By the address that was lent.
  std::unordered_map<void *, myelin_loan> loans_;
};

}  // namespace rmw_myelin
