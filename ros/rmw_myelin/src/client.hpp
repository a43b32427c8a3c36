#pragma once

#include <atomic>

#include "reader.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// What `rmw_client_t::data` is: requests go by one topic, replies to all clients come by another.
struct Client {
  Client(Node &node, Endpoint requests, Endpoint replies, std::string name);

  /// Who it is in the header of its requests, and of the replies to them.
  uint64_t id() const { return reader.endpoint().id; }

  Reader reader;
  Writer writer;
  std::string name;
  std::atomic<int64_t> last_sequence{0};
};

}  // namespace rmw_myelin
