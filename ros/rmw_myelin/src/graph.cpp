#include "graph.hpp"

#include <algorithm>
#include <cstring>

#include "context.hpp"
#include "rmw/get_node_info_and_types.h"
#include "rmw/get_service_names_and_types.h"
#include "rmw/get_topic_endpoint_info.h"
#include "rmw/get_topic_names_and_types.h"
#include "rmw/names_and_types.h"
#include "rmw/topic_endpoint_info_array.h"

namespace rmw_myelin {

void Graph::add_node(Node &node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.push_back(&node);
}

void Graph::remove_node(Node &node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.erase(std::remove(nodes_.begin(), nodes_.end(), &node), nodes_.end());
}

void Graph::add(Node &, const Endpoint &) {}

void Graph::remove(Node &, const Endpoint &) {}

rmw_qos_policy_kind_t Graph::verdict(const Endpoint &, uint64_t) { return RMW_QOS_POLICY_INVALID; }

rmw_gid_t gid_of(const rmw_context_impl_t &, uint64_t endpoint) {
  rmw_gid_t gid{};
  gid.implementation_identifier = identifier;
  std::memcpy(gid.data, &endpoint, sizeof(endpoint));
  return gid;
}

}  // namespace rmw_myelin

namespace {

rmw_ret_t unsupported() {
  RMW_SET_ERROR_MSG("the graph is not there yet");
  return RMW_RET_UNSUPPORTED;
}

}  // namespace

extern "C" {

RMW_PUBLIC rmw_ret_t rmw_get_node_names(const rmw_node_t *node, rcutils_string_array_t *,
                                        rcutils_string_array_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_node_names_with_enclaves(const rmw_node_t *node, rcutils_string_array_t *,
                                                      rcutils_string_array_t *,
                                                      rcutils_string_array_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_topic_names_and_types(const rmw_node_t *node, rcutils_allocator_t *, bool,
                                                   rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_service_names_and_types(const rmw_node_t *node, rcutils_allocator_t *,
                                                     rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_publisher_names_and_types_by_node(const rmw_node_t *node,
                                                               rcutils_allocator_t *, const char *,
                                                               const char *, bool,
                                                               rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_subscriber_names_and_types_by_node(const rmw_node_t *node,
                                                                rcutils_allocator_t *, const char *,
                                                                const char *, bool,
                                                                rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_service_names_and_types_by_node(const rmw_node_t *node,
                                                             rcutils_allocator_t *, const char *,
                                                             const char *, rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_client_names_and_types_by_node(const rmw_node_t *node,
                                                            rcutils_allocator_t *, const char *,
                                                            const char *, rmw_names_and_types_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_count_publishers(const rmw_node_t *node, const char *, size_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_count_subscribers(const rmw_node_t *node, const char *, size_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_count_clients(const rmw_node_t *node, const char *, size_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_count_services(const rmw_node_t *node, const char *, size_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_publishers_info_by_topic(const rmw_node_t *node, rcutils_allocator_t *,
                                                      const char *, bool,
                                                      rmw_topic_endpoint_info_array_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

RMW_PUBLIC rmw_ret_t rmw_get_subscriptions_info_by_topic(const rmw_node_t *node, rcutils_allocator_t *,
                                                         const char *, bool,
                                                         rmw_topic_endpoint_info_array_t *) {
  CHECK_HANDLE(node);
  return unsupported();
}

}  // extern "C"
