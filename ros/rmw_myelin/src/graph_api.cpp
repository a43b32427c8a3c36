// rmw's queries of the graph: nodes, topics, services and their endpoints.
#include <algorithm>
#include <map>
#include <set>

#include "context.hpp"
#include "names.hpp"
#include "rcutils/strdup.h"
#include "rmw/convert_rcutils_ret_to_rmw_ret.h"
#include "rmw/get_node_info_and_types.h"
#include "rmw/get_service_names_and_types.h"
#include "rmw/get_topic_endpoint_info.h"
#include "rmw/get_topic_names_and_types.h"
#include "rmw/sanity_checks.h"
#include "rmw/validate_full_topic_name.h"
#include "rmw/validate_namespace.h"
#include "rmw/validate_node_name.h"

using rmw_myelin::KnownEndpoint;
using rmw_myelin::KnownNode;
using rmw_myelin::Node;
using rmw_myelin::NodeName;
using rmw_myelin::View;

namespace {

/// Converts the name of a topic or a type in DDS to its name in ROS 2. Returns an empty string for a topic of the wrong
/// kind.
using Name = std::string (*)(const std::string &);
/// The types of each name, in ROS 2's form.
using NamesAndTypes = std::map<std::string, std::set<std::string>>;

std::string unchanged(const std::string &name) { return name; }

std::shared_ptr<const View> view_of(const rmw_node_t *node) {
  return static_cast<Node *>(node->data)->context.graph->view();
}

void add(NamesAndTypes &to, const KnownEndpoint &endpoint, Name topic, Name type) {
  const std::string name = topic(endpoint.topic);
  if (!name.empty()) to[name].insert(type(endpoint.type));
}

rmw_ret_t copy_strings(const std::set<std::string> &from, rcutils_allocator_t *allocator,
                       rcutils_string_array_t *to) {
  const rcutils_ret_t made = rcutils_string_array_init(to, from.size(), allocator);
  if (made != RCUTILS_RET_OK) return rmw_convert_rcutils_ret_to_rmw_ret(made);
  size_t at = 0;
  for (const std::string &text : from) {
    if ((to->data[at++] = rcutils_strdup(text.c_str(), *allocator)) == nullptr) {
      return RMW_RET_BAD_ALLOC;
    }
  }
  return RMW_RET_OK;
}

rmw_ret_t copy_names_and_types(const NamesAndTypes &from, rcutils_allocator_t *allocator, rmw_names_and_types_t *to) {
  if (from.empty()) return RMW_RET_OK;
  rmw_ret_t result = rmw_names_and_types_init(to, from.size(), allocator);
  if (result != RMW_RET_OK) return result;
  size_t at = 0;
  for (const auto &[name, types] : from) {
    to->names.data[at] = rcutils_strdup(name.c_str(), *allocator);
    result = to->names.data[at] == nullptr ? RMW_RET_BAD_ALLOC
                                           : copy_strings(types, allocator, &to->types[at]);
    if (result != RMW_RET_OK) {
      if (rmw_names_and_types_fini(to) != RMW_RET_OK) rmw_reset_error();
      RMW_SET_ERROR_MSG("failed to allocate memory for names and types");
      return result;
    }
    ++at;
  }
  return RMW_RET_OK;
}

rmw_ret_t names_and_types(const rmw_node_t *node, rcutils_allocator_t *allocator, Name topic, Name type,
                          rmw_names_and_types_t *to) {
  CHECK_HANDLE(node);
  RCUTILS_CHECK_ALLOCATOR_WITH_MSG(allocator, "allocator argument is invalid",
                                   return RMW_RET_INVALID_ARGUMENT);
  if (rmw_names_and_types_check_zero(to) != RMW_RET_OK) return RMW_RET_INVALID_ARGUMENT;
  NamesAndTypes found;
  const auto view = view_of(node);
  for (const KnownEndpoint &endpoint : view->endpoints) add(found, endpoint, topic, type);
  return copy_names_and_types(found, allocator, to);
}

rmw_ret_t check_node(const char *name, const char *name_space) {
  int result = RMW_NODE_NAME_VALID;
  rmw_ret_t checked = rmw_validate_node_name(name, &result, nullptr);
  if (checked != RMW_RET_OK) return checked;
  if (result != RMW_NODE_NAME_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("node_name argument is invalid: %s",
                                         rmw_node_name_validation_result_string(result));
    return RMW_RET_INVALID_ARGUMENT;
  }
  result = RMW_NAMESPACE_VALID;
  checked = rmw_validate_namespace(name_space, &result, nullptr);
  if (checked != RMW_RET_OK) return checked;
  if (result != RMW_NAMESPACE_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("node_namespace argument is invalid: %s",
                                         rmw_namespace_validation_result_string(result));
    return RMW_RET_INVALID_ARGUMENT;
  }
  return RMW_RET_OK;
}

/// Topics and types of the publishers or the subscriptions of one node.
rmw_ret_t names_and_types_of(const rmw_node_t *node, rcutils_allocator_t *allocator, const char *name,
                             const char *name_space, bool of_publishers, Name topic, Name type,
                             rmw_names_and_types_t *to) {
  CHECK_HANDLE(node);
  RCUTILS_CHECK_ALLOCATOR_WITH_MSG(allocator, "allocator argument is invalid",
                                   return RMW_RET_INVALID_ARGUMENT);
  const rmw_ret_t checked = check_node(name, name_space);
  if (checked != RMW_RET_OK) return checked;
  if (rmw_names_and_types_check_zero(to) != RMW_RET_OK) return RMW_RET_INVALID_ARGUMENT;
  const NodeName of{name_space, name};
  const auto view = view_of(node);
  const bool is_there = std::any_of(view->nodes.begin(), view->nodes.end(),
                                    [&](const KnownNode &each) { return each.name == of; });
  NamesAndTypes found;
  for (const KnownEndpoint &endpoint : view->endpoints) {
    if (endpoint.node == of && endpoint.is_publisher == of_publishers) add(found, endpoint, topic, type);
  }
  if (!is_there) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("there is no node %s in namespace %s", name, name_space);
    return RMW_RET_NODE_NAME_NON_EXISTENT;
  }
  return copy_names_and_types(found, allocator, to);
}

/// Counts the publishers or the subscriptions of a topic. `dds_name` converts `name` to the topic's name in DDS.
rmw_ret_t count(const rmw_node_t *node, const char *name,
                std::string (*dds_name)(const std::string &, const rmw_qos_profile_t &),
                bool of_publishers, size_t *to) {
  CHECK_HANDLE(node);
  CHECK_ARGUMENT(name);
  int result = RMW_TOPIC_VALID;
  const rmw_ret_t checked = rmw_validate_full_topic_name(name, &result, nullptr);
  if (checked != RMW_RET_OK) return checked;
  if (result != RMW_TOPIC_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("the name is invalid: %s",
                                         rmw_full_topic_name_validation_result_string(result));
    return RMW_RET_INVALID_ARGUMENT;
  }
  CHECK_ARGUMENT(to);
  const std::string topic = dds_name(name, rmw_qos_profile_t{});
  const auto view = view_of(node);
  *to = static_cast<size_t>(
      std::count_if(view->endpoints.begin(), view->endpoints.end(), [&](const KnownEndpoint &endpoint) {
        return endpoint.is_publisher == of_publishers && endpoint.topic == topic;
      }));
  return RMW_RET_OK;
}

/// Returns the node of an endpoint. Without a node, returns the placeholders that other RMWs use.
NodeName node_of(const KnownEndpoint &endpoint) {
  if (endpoint.node) return *endpoint.node;
  if (endpoint.is_of_nodes) return {"_NODE_NAMESPACE_UNKNOWN_", "_NODE_NAME_UNKNOWN_"};
  return {"_CREATED_BY_BARE_DDS_APP_", "_CREATED_BY_BARE_DDS_APP_"};
}

rmw_ret_t fill(rmw_topic_endpoint_info_t &info, const KnownEndpoint &endpoint, Name type,
               rcutils_allocator_t *allocator) {
  const NodeName node = node_of(endpoint);
  rmw_ret_t result = rmw_topic_endpoint_info_set_node_name(&info, node.name.c_str(), allocator);
  if (result != RMW_RET_OK) return result;
  result = rmw_topic_endpoint_info_set_node_namespace(&info, node.name_space.c_str(), allocator);
  if (result != RMW_RET_OK) return result;
  const std::string type_name = type(endpoint.type);
  result = rmw_topic_endpoint_info_set_topic_type(&info, type_name.c_str(), allocator);
  if (result != RMW_RET_OK) return result;
#ifdef RMW_MYELIN_HAS_TYPE_HASH
  rosidl_type_hash_t hash = rosidl_get_zero_initialized_type_hash();
  if (!endpoint.hash.empty() && rosidl_parse_type_hash_string(endpoint.hash.c_str(), &hash) != RCUTILS_RET_OK) {
    rcutils_reset_error();
    hash = rosidl_get_zero_initialized_type_hash();
  }
  result = rmw_topic_endpoint_info_set_topic_type_hash(&info, &hash);
  if (result != RMW_RET_OK) return result;
#endif
  const auto kind = endpoint.is_publisher ? RMW_ENDPOINT_PUBLISHER : RMW_ENDPOINT_SUBSCRIPTION;
  result = rmw_topic_endpoint_info_set_endpoint_type(&info, kind);
  if (result != RMW_RET_OK) return result;
  result = rmw_topic_endpoint_info_set_gid(&info, endpoint.gid.data(), endpoint.gid.size());
  if (result != RMW_RET_OK) return result;
  return rmw_topic_endpoint_info_set_qos_profile(&info, &endpoint.qos);
}

rmw_ret_t infos(const rmw_node_t *node, rcutils_allocator_t *allocator, const char *topic_name,
                bool as_in_dds, bool of_publishers, rmw_topic_endpoint_info_array_t *to) {
  CHECK_HANDLE(node);
  RCUTILS_CHECK_ALLOCATOR_WITH_MSG(allocator, "allocator argument is invalid",
                                   return RMW_RET_INVALID_ARGUMENT);
  CHECK_ARGUMENT(topic_name);
  if (rmw_topic_endpoint_info_array_check_zero(to) != RMW_RET_OK) return RMW_RET_INVALID_ARGUMENT;
  rmw_qos_profile_t qos{};
  qos.avoid_ros_namespace_conventions = as_in_dds;
  const std::string topic = rmw_myelin::topic_name(topic_name, qos);
  const auto view = view_of(node);
  std::vector<const KnownEndpoint *> found;
  for (const KnownEndpoint &endpoint : view->endpoints) {
    if (endpoint.is_publisher == of_publishers && endpoint.topic == topic) found.push_back(&endpoint);
  }
  if (found.empty()) return RMW_RET_OK;
  rmw_ret_t result = rmw_topic_endpoint_info_array_init_with_size(to, found.size(), allocator);
  for (size_t at = 0; result == RMW_RET_OK && at < found.size(); ++at) {
    to->info_array[at] = rmw_get_zero_initialized_topic_endpoint_info();
    result = fill(to->info_array[at], *found[at], as_in_dds ? unchanged : rmw_myelin::ros_type, allocator);
  }
  if (result == RMW_RET_OK) return result;
  const rmw_ret_t ended = rmw_topic_endpoint_info_array_fini(to, allocator);
  return ended == RMW_RET_OK ? result : ended;
}

rmw_ret_t node_names(const rmw_node_t *node, rcutils_string_array_t *names,
                     rcutils_string_array_t *name_spaces, rcutils_string_array_t *enclaves) {
  CHECK_HANDLE(node);
  rcutils_string_array_t *const arrays[] = {names, name_spaces, enclaves};
  for (rcutils_string_array_t *array : arrays) {
    if (array == enclaves && array == nullptr) continue;
    if (rmw_check_zero_rmw_string_array(array) != RMW_RET_OK) return RMW_RET_INVALID_ARGUMENT;
  }
  std::vector<std::array<std::string, 3>> found;
  const auto view = view_of(node);
  for (const KnownNode &each : view->nodes) {
    found.push_back({each.name.name, each.name.name_space, each.enclave});
  }
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rcutils_ret_t result = RCUTILS_RET_OK;
  for (size_t which = 0; which < (enclaves == nullptr ? 2 : 3); ++which) {
    result = rcutils_string_array_init(arrays[which], found.size(), &allocator);
    for (size_t at = 0; result == RCUTILS_RET_OK && at < found.size(); ++at) {
      arrays[which]->data[at] = rcutils_strdup(found[at][which].c_str(), allocator);
      if (arrays[which]->data[at] == nullptr) result = RCUTILS_RET_BAD_ALLOC;
    }
    if (result != RCUTILS_RET_OK) break;
  }
  if (result != RCUTILS_RET_OK) {
    for (rcutils_string_array_t *array : arrays) {
      if (array != nullptr && rcutils_string_array_fini(array) != RCUTILS_RET_OK) rcutils_reset_error();
    }
    RMW_SET_ERROR_MSG("failed to allocate memory for the names of nodes");
  }
  return rmw_convert_rcutils_ret_to_rmw_ret(result);
}

}  // namespace

extern "C" {

RMW_PUBLIC rmw_ret_t rmw_get_node_names(const rmw_node_t *node, rcutils_string_array_t *node_names,
                                        rcutils_string_array_t *node_namespaces) try {
  return ::node_names(node, node_names, node_namespaces, nullptr);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_node_names_with_enclaves(const rmw_node_t *node,
                                                      rcutils_string_array_t *node_names,
                                                      rcutils_string_array_t *node_namespaces,
                                                      rcutils_string_array_t *enclaves) try {
  CHECK_HANDLE(node);
  if (rmw_check_zero_rmw_string_array(enclaves) != RMW_RET_OK) return RMW_RET_INVALID_ARGUMENT;
  return ::node_names(node, node_names, node_namespaces, enclaves);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_topic_names_and_types(const rmw_node_t *node,
                                                   rcutils_allocator_t *allocator, bool no_demangle,
                                                   rmw_names_and_types_t *topic_names_and_types) try {
  return names_and_types(node, allocator, no_demangle ? unchanged : rmw_myelin::ros_topic,
                         no_demangle ? unchanged : rmw_myelin::ros_type, topic_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_service_names_and_types(const rmw_node_t *node,
                                                     rcutils_allocator_t *allocator,
                                                     rmw_names_and_types_t *service_names_and_types) try {
  return names_and_types(node, allocator, rmw_myelin::ros_service, rmw_myelin::ros_service_type,
                         service_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_subscriber_names_and_types_by_node(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *node_name,
    const char *node_namespace, bool no_demangle, rmw_names_and_types_t *topic_names_and_types) try {
  return names_and_types_of(node, allocator, node_name, node_namespace, false,
                            no_demangle ? unchanged : rmw_myelin::ros_topic,
                            no_demangle ? unchanged : rmw_myelin::ros_type, topic_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_publisher_names_and_types_by_node(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *node_name,
    const char *node_namespace, bool no_demangle, rmw_names_and_types_t *topic_names_and_types) try {
  return names_and_types_of(node, allocator, node_name, node_namespace, true,
                            no_demangle ? unchanged : rmw_myelin::ros_topic,
                            no_demangle ? unchanged : rmw_myelin::ros_type, topic_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_service_names_and_types_by_node(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *node_name,
    const char *node_namespace, rmw_names_and_types_t *service_names_and_types) try {
  return names_and_types_of(node, allocator, node_name, node_namespace, false,
                            rmw_myelin::ros_service_of_request, rmw_myelin::ros_service_type,
                            service_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_client_names_and_types_by_node(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *node_name,
    const char *node_namespace, rmw_names_and_types_t *service_names_and_types) try {
  return names_and_types_of(node, allocator, node_name, node_namespace, false,
                            rmw_myelin::ros_service_of_reply, rmw_myelin::ros_service_type,
                            service_names_and_types);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_count_publishers(const rmw_node_t *node, const char *topic_name,
                                          size_t *found) try {
  return count(node, topic_name, rmw_myelin::topic_name, true, found);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_count_subscribers(const rmw_node_t *node, const char *topic_name,
                                           size_t *found) try {
  return count(node, topic_name, rmw_myelin::topic_name, false, found);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_count_clients(const rmw_node_t *node, const char *service_name,
                                       size_t *found) try {
  return count(node, service_name, rmw_myelin::reply_name, false, found);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_count_services(const rmw_node_t *node, const char *service_name,
                                        size_t *found) try {
  return count(node, service_name, rmw_myelin::reply_name, true, found);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_publishers_info_by_topic(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *topic_name, bool no_mangle,
    rmw_topic_endpoint_info_array_t *publishers_info) try {
  return infos(node, allocator, topic_name, no_mangle, true, publishers_info);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_subscriptions_info_by_topic(
    const rmw_node_t *node, rcutils_allocator_t *allocator, const char *topic_name, bool no_mangle,
    rmw_topic_endpoint_info_array_t *subscriptions_info) try {
  return infos(node, allocator, topic_name, no_mangle, false, subscriptions_info);
} CONTAIN

}  // extern "C"
