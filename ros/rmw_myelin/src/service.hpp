#pragma once

#include "reader.hpp"
#include "reply_writers.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// `rmw_service_t::data`. Requests have one topic. Replies have one topic for each client on this host, and another for
/// all clients elsewhere.
struct Service {
  Service(Node &node, Endpoint requests, Endpoint shared, std::string name);

  Reader reader;
  Writer writer;
  ReplyWriters replies;
  std::string name;
};

/// Fills in the two endpoints of a service, both as subscribers; the caller makes one of them a publisher. Sets the
/// error and returns false, or throws a std::runtime_error, if an argument is invalid.
bool service_endpoints(const rosidl_service_type_support_t &type_support, const char *name,
                       const rmw_qos_profile_t &requested, Endpoint &requests, Endpoint &replies);

/// Takes a request or a reply. A message that cannot be decoded is logged and dropped.
rmw_ret_t take_message(Reader &reader, const std::string &name, rmw_service_info_t *info, void *message,
                       bool *taken);

}  // namespace rmw_myelin
