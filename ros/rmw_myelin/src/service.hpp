#pragma once

#include "reader.hpp"
#include "reply_writers.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// What `rmw_service_t::data` is: requests come by one topic; replies go by one of each client on this host, and by
/// another to all clients elsewhere.
struct Service {
  Service(Node &node, Endpoint requests, Endpoint shared, std::string name);

  Reader reader;
  Writer writer;
  ReplyWriters replies;
  std::string name;
};

/// The two topics of a service; neither is a publisher's yet. Sets the error and returns false, or throws a
/// std::runtime_error, if they cannot be.
bool service_endpoints(const rosidl_service_type_support_t &type_support, const char *name,
                       const rmw_qos_profile_t &asked, Endpoint &requests, Endpoint &replies);

/// Takes a request or a reply.
rmw_ret_t take_message(Reader &reader, const std::string &name, rmw_service_info_t *info, void *message,
                       bool *taken);

}  // namespace rmw_myelin
