#pragma once

#include <atomic>

#include "reader.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// `rmw_client_t::data`. Requests have one topic. Replies have another topic: on this host one for each client, between
/// hosts one for all clients.
struct Client {
  Client(Node &node, Endpoint requests, Endpoint replies, std::string name);

  /// Identifies the client in the header of its requests and of their replies.
  uint64_t id() const { return reader.endpoint().id; }

  Writer writer;
  Reader reader;
  std::string name;
  std::atomic<int64_t> last_sequence{0};
};

}  // namespace rmw_myelin
