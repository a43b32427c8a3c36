// ROS 2 nodes. All nodes of a context share the context's node of the library.
#include <memory>
#include <new>

#include "context.hpp"
#include "rmw/allocators.h"
#include "rmw/validate_namespace.h"
#include "rmw/validate_node_name.h"

using rmw_myelin::Node;

extern "C" {

RMW_PUBLIC rmw_node_t *rmw_create_node(rmw_context_t *context, const char *name,
                                       const char *namespace_) try {
  CHECK_HANDLE_OR_NULL(context);
  RMW_CHECK_FOR_NULL_WITH_MSG(context->impl, "expected initialized context", return nullptr);
  int result = RMW_NODE_NAME_VALID;
  if (rmw_validate_node_name(name, &result, nullptr) != RMW_RET_OK) return nullptr;
  if (result != RMW_NODE_NAME_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("invalid node name: %s",
                                         rmw_node_name_validation_result_string(result));
    return nullptr;
  }
  result = RMW_NAMESPACE_VALID;
  if (rmw_validate_namespace(namespace_, &result, nullptr) != RMW_RET_OK) return nullptr;
  if (result != RMW_NAMESPACE_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("invalid node namespace: %s",
                                         rmw_namespace_validation_result_string(result));
    return nullptr;
  }
  rmw_context_impl_t &impl = *context->impl;
  if (impl.is_shut_down) {
    RMW_SET_ERROR_MSG("context has been shutdown");
    return nullptr;
  }
  std::unique_ptr<Node> node(new Node{impl, {namespace_, name}});
  node->graph_condition = {rmw_myelin::identifier, &node->graph_changed, context};
  auto handle = std::make_unique<rmw_node_t>();
  handle->implementation_identifier = rmw_myelin::identifier;
  handle->name = node->name.name.c_str();
  handle->namespace_ = node->name.name_space.c_str();
  handle->context = context;
  impl.graph->add(*node);
  const std::lock_guard<std::mutex> lock(impl.mutex);
  ++impl.nodes;
  handle->data = node.release();
  return handle.release();
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_node(rmw_node_t *node) try {
  CHECK_HANDLE(node);
  const std::unique_ptr<Node> own(static_cast<Node *>(node->data));
  own->context.graph->remove(*own);
  {
    const std::lock_guard<std::mutex> lock(own->context.mutex);
    --own->context.nodes;
  }
  delete node;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC const rmw_guard_condition_t *rmw_node_get_graph_guard_condition(const rmw_node_t *node) try {
  CHECK_HANDLE_OR_NULL(node);
  return &static_cast<Node *>(node->data)->graph_condition;
} CONTAIN_OR_NULL

}  // extern "C"
