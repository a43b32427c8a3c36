// What a publisher or a subscriber of the library is opened with.
#pragma once

#include <string>
#include <tuple>

#include "support.hpp"
#include "type_support.hpp"

namespace rmw_myelin {

struct NodeName {
  std::string name_space;
  std::string name;

  bool operator==(const NodeName &other) const { return name_space == other.name_space && name == other.name; }
  bool operator<(const NodeName &other) const {
    return std::tie(name_space, name) < std::tie(other.name_space, other.name);
  }
};

/// Topic, type and settings of a publisher or a subscriber. A service has two endpoints, and so has a client.
struct Endpoint {
  bool is_publisher;
  /// Name in DDS: `rt/chatter`.
  std::string topic;
  MessageType type;
  rmw_qos_profile_t qos;
  /// The endpoint carries requests or replies.
  bool is_of_service = false;
  bool is_of_replies = false;
  /// For a reply topic of one client on this host: the id of the publisher of the client's requests. 0 for the reply
  /// topic in DDS, which all clients share.
  uint64_t client = 0;
  /// Empty for a publisher of replies to one client.
  NodeName node = {};
  /// The library's id of the endpoint; 0 before it is opened.
  uint64_t id = 0;

  /// For requests and replies: CycloneDDS's vendor id in RTPS. They have the format of rmw_cyclonedds, and other RMWs
  /// use other formats. For all other topics: 0, which matches every vendor.
  uint16_t dds_vendor() const {
    return topic.rfind("rq/", 0) == 0 || topic.rfind("rr/", 0) == 0 ? 0x0110 : 0;
  }

  /// Whether it publishes replies to one client only. The graph does not show such an endpoint.
  bool is_way_back() const { return is_publisher && client != 0; }

  /// User data that DDS announces with the endpoint.
  std::string user_data() const { return type.hash.empty() ? "" : "typehash=" + type.hash + ";"; }
};

/// Whether two endpoints belong to one node of the library. The arguments are endpoint ids.
inline bool is_of_one_node(uint64_t one, uint64_t other) {
  // The upper 40 bits are the id of the node.
  return one >> 24 == other >> 24;
}

}  // namespace rmw_myelin
