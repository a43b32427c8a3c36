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
  /// The library's id of it; 0 before it is opened.
  uint64_t id = 0;
};

}  // namespace rmw_myelin
