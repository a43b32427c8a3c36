// What a publisher or subscriber of the library is in the graph.
#pragma once

#include <string>

#include "support.hpp"
#include "type_support.hpp"

namespace rmw_myelin {

/// A publisher's or a subscriber's topic, type and settings. Of a service or client there are two.
struct Endpoint {
  bool is_publisher;
  /// In DDS: `rt/chatter`.
  std::string topic;
  MessageType type;
  rmw_qos_profile_t qos;
  /// It carries requests or replies.
  bool is_of_service = false;
  bool is_of_replies = false;
  /// Of replies on this host, which each client has a topic of its own for: the id of the publisher of its requests.
  /// 0 for the topic in DDS, which all clients share.
  uint64_t client = 0;
  /// The library's id of it; 0 before it is opened.
  uint64_t id = 0;

  /// CycloneDDS's number in RTPS if it is of a service: requests and replies have the form that
  /// rmw_cyclonedds gives them, and other RMWs have others. 0 for all.
  uint16_t dds_vendor() const {
    return topic.rfind("rq/", 0) == 0 || topic.rfind("rr/", 0) == 0 ? 0x0110 : 0;
  }

  /// It publishes to one client alone: no part of the graph.
  bool is_way_back() const { return is_publisher && client != 0; }

  /// What is told of it in DDS beside its settings.
  std::string user_data() const { return type.hash.empty() ? "" : "typehash=" + type.hash + ";"; }
};

/// Whether two endpoints are of one node of the library, by their ids.
inline bool is_of_one_node(uint64_t one, uint64_t other) {
  // The upper 40 bits are the node's.
  return one >> 24 == other >> 24;
}

}  // namespace rmw_myelin
