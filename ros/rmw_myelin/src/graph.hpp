// The graph of a context: all nodes, topics and services.
//
// Contexts describe themselves to each other on `ros_graph`, a topic of Myelin, on this host and between hosts. Each
// context publishes all its nodes and endpoints after every change. A context that starts later gets the newest message
// of each, and a context that dies is noticed at once. For other RMWs, DDS does this: its discovery finds endpoints, and
// ROS 2's topic `ros_discovery_info` names the node of each endpoint.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "endpoint.hpp"
#include "support.hpp"

namespace rmw_myelin {

struct Node;

/// Identifies an endpoint or a context. On Myelin it contains the library's id, and on other RMWs it is the GUID in DDS.
using Gid = std::array<uint8_t, 16>;

/// A publisher or a subscriber of any process.
struct KnownEndpoint {
  bool is_publisher;
  /// Name in DDS.
  std::string topic;
  std::string type;
  /// `RIHS01_…`, or empty if it is not known.
  std::string hash;
  rmw_qos_profile_t qos;
};

/// A node of any process.
struct KnownNode {
  std::string name_space;
  std::string name;
  std::vector<Gid> endpoints;
};

/// A context, or a DDS participant of another RMW.
struct Participant {
  std::string enclave;
  std::vector<KnownNode> nodes;
  std::map<Gid, KnownEndpoint> endpoints;

  /// Returns the node of an endpoint, or NULL if it is not known.
  const KnownNode *node_of(const Gid &endpoint) const;
};

/// The graph of a context. Any thread may use it.
class Graph {
 public:
  /// Throws a std::runtime_error. `over_network`: exchange nodes with other RMWs too.
  Graph(rmw_context_impl_t &context, bool over_network);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void add_node(Node &node);
  void remove_node(Node &node);
  /// `add` follows the opening of an endpoint of one of our nodes; `remove` precedes its closing.
  void add(Node &node, const Endpoint &endpoint);
  void remove(Node &node, const Endpoint &endpoint);

  /// Returns the settings of an endpoint by the library's id, if it is known. Endpoints of other RMWs have no such id:
  /// DDS decides about their matches.
  std::optional<rmw_qos_profile_t> qos_of(uint64_t endpoint) const;

  /// An endpoint of ours triggers this guard when it has an event. The graph's thread then polls the endpoint.
  myelin_guard *guard() const { return guard_; }

  /// Calls `visit` with each participant, under the lock.
  template <typename Visit>
  void visit(Visit visit) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[gid, participant] : participants_) visit(participant);
  }

 private:
  void run();
  /// Throws a std::runtime_error.
  void open_all();
  void close_all();
  /// Takes in the messages of others. Returns whether the graph has changed.
  bool hear();
  bool hear_contexts();
  /// Both remove the context of `publisher` from the graph, and return whether it was there. `refuse` is for a message
  /// that cannot be read, `forget` for a publisher that has gone.
  bool refuse(uint64_t publisher, const char *why);
  bool forget(uint64_t publisher);
  void hear_dds();
  bool discover();
  void announce();
  void announce_to_dds();
  /// Warns, once, if endpoints of one topic have different versions of its type.
  void compare(const KnownEndpoint &own, const Participant &other);
  /// Logs the warnings. Called by the graph's thread without a lock: a log handler may call all of rmw.
  void log_warnings();
  /// Our nodes or endpoints have changed: has them published, and wakes waits for a graph change. Under the lock.
  void changed();
  void tell_nodes();
  KnownNode &known_node(const Node &node);
  Participant &own() { return participants_[own_gid_]; }

  rmw_context_impl_t &context_;
  const bool over_network_;
  Gid own_gid_{};

  myelin_publisher *publisher_ = nullptr;
  myelin_subscriber *subscriber_ = nullptr;
  myelin_publisher *dds_publisher_ = nullptr;
  myelin_subscriber *dds_subscriber_ = nullptr;
  myelin_wait_set *set_ = nullptr;
  myelin_guard *guard_ = nullptr;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;

  mutable std::mutex mutex_;
  std::map<Gid, Participant> participants_;
  /// Our nodes, in the order of `own().nodes`.
  std::vector<Node *> nodes_;
  /// Topics and type hashes that a warning has named.
  std::set<std::string> told_types_;
  std::vector<std::string> warnings_;
  /// Our nodes or endpoints have changed since they were last published.
  bool is_untold_ = true;

  // Used by the graph's thread only.
  /// Contexts by the library's id of their publisher on `ros_graph`.
  std::map<uint64_t, Gid> contexts_;
  /// Publishers that a warning has reported as unreadable.
  std::set<uint64_t> refused_;
  /// Nodes of other RMWs by participant, and the participants that the last discovery found.
  std::map<Gid, std::vector<KnownNode>> dds_nodes_;
  std::map<Gid, Participant> dds_participants_;
  /// The GUIDs in DDS of our endpoints.
  std::map<Gid, Gid> dds_gids_;
  std::vector<uint8_t> told_dds_;
};

/// Makes a gid from the library's id of an endpoint.
Gid gid_of(uint64_t endpoint);

/// Converts a gid to ROS 2's struct.
rmw_gid_t ros_gid(const Gid &gid);

}  // namespace rmw_myelin
