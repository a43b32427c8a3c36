#pragma once

#include <atomic>

#include "reader.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// What `rmw_client_t::data` is: requests go by one topic; replies come by another, on this host to this client alone,
/// from other hosts to all clients.
struct Client {
  Client(Node &node, Endpoint requests, Endpoint replies, std::string name);

  /// Who it is in the header of its requests, and of the replies to them.
  uint64_t id() const { return reader.endpoint().id; }

  Writer writer;
  Reader reader;
  std::string name;
  std::atomic<int64_t> last_sequence{0};
};

}  // namespace rmw_myelin
