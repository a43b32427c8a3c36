// The topic `ros_discovery_info` in DDS, on which the participants of all RMWs name their nodes. Nodes on this host that
// run rmw_myelin do not need it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "records.hpp"

namespace rmw_myelin {

/// Returns the participant of an endpoint. Both are GUIDs in DDS.
Gid participant_of(Gid endpoint);

/// A node elsewhere.
struct NodeElsewhere {
  NodeName name;
  /// Its endpoints.
  std::set<Gid> endpoints;
};

/// A node of this process. Its endpoints are GUIDs in DDS.
struct OwnNode {
  NodeName name;
  std::vector<Gid> publishers;
  std::vector<Gid> subscribers;
};

/// One thread at a time uses it.
class DiscoveryInfo {
 public:
  using Nodes = std::vector<NodeElsewhere>;

  /// Throws a std::runtime_error.
  explicit DiscoveryInfo(myelin_node *node);
  ~DiscoveryInfo();
  DiscoveryInfo(const DiscoveryInfo &) = delete;
  DiscoveryInfo &operator=(const DiscoveryInfo &) = delete;

  myelin_publisher *publisher() const { return publisher_; }
  /// Has samples to take when others have published.
  myelin_subscriber *subscriber() const { return subscriber_; }
  /// Takes the newest nodes of other participants. Adds warnings about messages that cannot be read. Returns the
  /// number of messages.
  size_t take(std::vector<std::string> &warnings);
  /// The nodes of a participant, or NULL.
  const Nodes *nodes_of(const Gid &participant) const;
  /// Forgets the participants that were there at the last call and are not among these.
  void keep(std::set<Gid> participants);
  /// Publishes the nodes of this process, which is this participant, unless they are the same as before.
  void publish(const Gid &participant, const std::vector<OwnNode> &nodes);

 private:
  void close();

  myelin_publisher *publisher_ = nullptr;
  myelin_subscriber *subscriber_ = nullptr;
  std::map<Gid, Nodes> nodes_;
  std::set<Gid> kept_;
  /// Publishers whose message a warning has reported as unreadable.
  std::set<uint64_t> refused_;
  std::vector<uint8_t> published_;
};

}  // namespace rmw_myelin
