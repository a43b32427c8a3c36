// What a context knows of all nodes, topics and services, and tells of its own.
#pragma once

#include <mutex>
#include <vector>

#include "endpoint.hpp"
#include "support.hpp"

namespace rmw_myelin {

struct Node;

/// The graph of a context. Any thread may use it.
class Graph {
 public:
  explicit Graph(rmw_context_impl_t &context) : context_(context) {}

  void add_node(Node &node);
  void remove_node(Node &node);
  /// An endpoint of one of our nodes has been opened, or is about to be closed.
  void add(Node &node, const Endpoint &endpoint);
  void remove(Node &node, const Endpoint &endpoint);

  /// The policy for which a pair may not match, or RMW_QOS_POLICY_INVALID: `own` is an endpoint of ours,
  /// `other` the library's id of the other side.
  rmw_qos_policy_kind_t verdict(const Endpoint &own, uint64_t other);

 private:
  rmw_context_impl_t &context_;
  std::mutex mutex_;
  std::vector<Node *> nodes_;
};

/// The gid of an endpoint, ours or another's, by the library's id.
rmw_gid_t gid_of(const rmw_context_impl_t &context, uint64_t endpoint);

}  // namespace rmw_myelin
