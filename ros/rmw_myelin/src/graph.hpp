// The graph of a context: all nodes, topics and services.
//
// It is the library's graph: the records of all endpoints of this host, with the attributes of `records.hpp`, and what
// DDS announces of the endpoints elsewhere. Their nodes are named by ROS 2's topic `ros_discovery_info`.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "discovery_info.hpp"
#include "records.hpp"
#include "support.hpp"

namespace rmw_myelin {

struct Node;

/// A node of any process.
struct KnownNode {
  NodeName name;
  std::string enclave;
};

/// All nodes and endpoints at one moment.
struct View {
  std::vector<KnownNode> nodes;
  std::vector<KnownEndpoint> endpoints;
};

/// The graph of a context. Any thread may use it.
class Graph {
 public:
  /// Throws a std::runtime_error. `over_network`: exchange nodes with other hosts and RMWs too.
  Graph(rmw_context_impl_t &context, bool over_network);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Announces a node until it is removed. Throws a std::runtime_error.
  void add(Node &node);
  void remove(Node &node);

  /// The graph now. After a change, it takes time for each endpoint. Throws a std::runtime_error.
  std::shared_ptr<const View> view();
  /// Returns an endpoint of this host by the library's id, at the cost of one look-up.
  std::optional<KnownEndpoint> find(uint64_t endpoint) const;
  /// Returns a warning if another endpoint of our endpoint's topic has another version of its type, once for each
  /// version. `type` and `hash` are ours.
  std::optional<std::string> compare(const std::string &type, const std::string &hash, const KnownEndpoint &other);

  /// An endpoint of ours triggers this guard when it has an event. The graph's thread then polls the endpoint.
  myelin_guard_condition *guard() const { return events_; }

 private:
  void run();
  void close();
  /// Takes and publishes the nodes in DDS.
  void exchange();
  View read();
  /// Names the node of an endpoint elsewhere, and adds the nodes of its participant if that is new.
  void add_nodes(View &view, std::set<Gid> &participants, KnownEndpoint &endpoint);
  /// Logs, once for each endpoint, that its attributes cannot be read.
  void warn_of(uint64_t endpoint, const char *attribute);

  rmw_context_impl_t &context_;
  myelin_wait_set *set_ = nullptr;
  myelin_guard_condition *events_ = nullptr;
  myelin_guard_condition *changes_ = nullptr;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;

  std::mutex mutex_;
  std::vector<Node *> nodes_;
  /// The newest view, and the number of changes and messages from elsewhere before it was read.
  std::shared_ptr<const View> view_;
  uint64_t view_changes_ = 0;
  uint64_t messages_ = 0;
  /// NULL without a network.
  std::optional<DiscoveryInfo> elsewhere_;
  /// Topics and type hashes that a warning has named, and endpoints with unreadable attributes.
  std::set<std::string> compared_;
  std::set<uint64_t> unreadable_;
};

}  // namespace rmw_myelin
