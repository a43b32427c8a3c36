// What a context knows of all nodes, topics and services, and tells of its own.
//
// Contexts tell each other by a topic of Myelin's own, `ros_graph`, on this host and on others: each its whole
// state whenever that changes; who comes later gets the newest, and who dies is missed at once. Nodes of other
// RMWs are told and found by DDS: its discovery of endpoints, and ROS 2's topic `ros_discovery_info`, which says
// whose they are.
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

/// Names an endpoint or a context: of Myelin's the library's id, of others their name in DDS.
using Gid = std::array<uint8_t, 16>;

/// A publisher or subscriber, whose ever it is.
struct KnownEndpoint {
  bool is_publisher;
  /// In DDS.
  std::string topic;
  std::string type;
  /// `RIHS01_…`, or empty.
  std::string hash;
  rmw_qos_profile_t qos;
};

/// A node, whose ever it is.
struct KnownNode {
  std::string name_space;
  std::string name;
  std::vector<Gid> endpoints;
};

/// A context, or what is one in another RMW.
struct Participant {
  std::string enclave;
  std::vector<KnownNode> nodes;
  std::map<Gid, KnownEndpoint> endpoints;

  /// The node of an endpoint, if it is known.
  const KnownNode *node_of(const Gid &endpoint) const;
};

/// The graph of a context. Any thread may use it.
class Graph {
 public:
  /// Throws a std::runtime_error. `over_network`: other RMWs are to be told and found.
  Graph(rmw_context_impl_t &context, bool over_network);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void add_node(Node &node);
  void remove_node(Node &node);
  /// An endpoint of one of our nodes has been opened, or is about to be closed.
  void add(Node &node, const Endpoint &endpoint);
  void remove(Node &node, const Endpoint &endpoint);

  /// The settings of an endpoint by the library's id, if it is known. Those of other RMWs are not: of their
  /// matches DDS decides.
  std::optional<rmw_qos_profile_t> qos_of(uint64_t endpoint) const;

  /// To be triggered when an endpoint of ours has an event: the graph's thread then polls it.
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
  /// Takes in what others have said. True if anything is different.
  bool hear();
  bool hear_contexts();
  /// What a publisher says of a context cannot be read, or it has gone: its context is none of the graph's any
  /// more. Whether it was.
  bool refuse(uint64_t publisher, const char *why);
  bool forget(uint64_t publisher);
  void hear_dds();
  bool discover();
  void announce();
  void announce_to_dds();
  /// Has people told, once, that endpoints of a topic have different versions of its type.
  void compare(const KnownEndpoint &own, const Participant &other);
  /// By the graph's thread, with no lock held: a log handler may use everything.
  void log_warnings();
  /// Others are to be told, and our nodes that the graph has changed.
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
  /// Ours, in the order of `own().nodes`.
  std::vector<Node *> nodes_;
  /// Topics, and versions of their types, that people have been told of.
  std::set<std::string> told_types_;
  std::vector<std::string> warnings_;
  /// Others have not been told yet.
  bool is_untold_ = true;

  // The thread's own.
  /// By the library's id of the publisher that tells of it.
  std::map<uint64_t, Gid> contexts_;
  /// Publishers of which a warning has said that they cannot be read.
  std::set<uint64_t> refused_;
  /// What other RMWs say of their nodes, by participant; and the participants there were.
  std::map<Gid, std::vector<KnownNode>> dds_nodes_;
  std::map<Gid, Participant> dds_participants_;
  /// What our endpoints are called in DDS.
  std::map<Gid, Gid> dds_gids_;
  std::vector<uint8_t> told_dds_;
};

/// The gid of an endpoint of Myelin, by the library's id.
Gid gid_of(uint64_t endpoint);

/// As ROS 2 has it.
rmw_gid_t ros_gid(const Gid &gid);

}  // namespace rmw_myelin
