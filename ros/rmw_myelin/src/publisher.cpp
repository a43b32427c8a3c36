#include "publisher.hpp"

#include <memory>

#include "context.hpp"
#include "names.hpp"
#include "qos.hpp"

namespace rmw_myelin {

static Publisher *publisher_of(const rmw_publisher_t *publisher) {
  return static_cast<Publisher *>(publisher->data);
}

}  // namespace rmw_myelin

using rmw_myelin::Endpoint;
using rmw_myelin::Node;
using rmw_myelin::Publisher;
using rmw_myelin::publisher_of;

extern "C" {

RMW_PUBLIC rmw_publisher_t *rmw_create_publisher(
    const rmw_node_t *node, const rosidl_message_type_support_t *type_support,
    const char *topic_name, const rmw_qos_profile_t *qos_profile,
    const rmw_publisher_options_t *publisher_options) try {
  CHECK_HANDLE_OR_NULL(node);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(topic_name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_profile, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(publisher_options, nullptr);
  if (!rmw_myelin::check_name(topic_name, *qos_profile)) return nullptr;
  if (publisher_options->require_unique_network_flow_endpoints ==
      RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED) {
    RMW_SET_ERROR_MSG("unique network flow endpoints are not supported");
    return nullptr;
  }
  Endpoint endpoint{true, rmw_myelin::topic_name(topic_name, *qos_profile), {}, {}};
  if (!rmw_myelin::resolve_publisher(node, topic_name, *qos_profile, endpoint.qos)) return nullptr;
  try {
    endpoint.type = rmw_myelin::message_type(*type_support);
    auto &own = *static_cast<Node *>(node->data);
    auto made = std::make_unique<Publisher>(own, std::move(endpoint), topic_name);
    auto handle = std::make_unique<rmw_publisher_t>();
    handle->implementation_identifier = rmw_myelin::identifier;
    handle->topic_name = made->topic_name.c_str();
    handle->options = *publisher_options;
    handle->can_loan_messages = made->writer.can_loan();
    handle->data = made.release();
    return handle.release();
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("cannot create a publisher of %s: %s", topic_name,
                                         error.what());
    return nullptr;
  }
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_publisher(rmw_node_t *node, rmw_publisher_t *publisher) try {
  CHECK_HANDLE(node);
  CHECK_HANDLE(publisher);
  delete publisher_of(publisher);
  delete publisher;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publish(const rmw_publisher_t *publisher, const void *ros_message,
                                 rmw_publisher_allocation_t *) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(ros_message);
  return publisher_of(publisher)->writer.publish(ros_message);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publish_serialized_message(const rmw_publisher_t *publisher,
                                                    const rmw_serialized_message_t *serialized_message,
                                                    rmw_publisher_allocation_t *) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(serialized_message);
  const uint8_t *data = serialized_message->buffer;
  const size_t bytes = serialized_message->buffer_length;
  if (const char *why = rmw_myelin::cdr::header_error(data, bytes)) {
    RMW_SET_ERROR_MSG(why);
    return RMW_RET_ERROR;
  }
  return publisher_of(publisher)->writer.publish_serialized(data, bytes);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_borrow_loaned_message(const rmw_publisher_t *publisher,
                                               const rosidl_message_type_support_t *type_support,
                                               void **ros_message) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(type_support);
  CHECK_ARGUMENT(ros_message);
  if (*ros_message != nullptr) {
    RMW_SET_ERROR_MSG("expected a message pointer that is NULL");
    return RMW_RET_INVALID_ARGUMENT;
  }
  CHECK_CAN_LOAN(publisher);
  return publisher_of(publisher)->writer.borrow(ros_message);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_return_loaned_message_from_publisher(const rmw_publisher_t *publisher,
                                                              void *loaned_message) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(loaned_message);
  CHECK_CAN_LOAN(publisher);
  return publisher_of(publisher)->writer.give_back(loaned_message);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publish_loaned_message(const rmw_publisher_t *publisher, void *ros_message,
                                                rmw_publisher_allocation_t *) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(ros_message);
  CHECK_CAN_LOAN(publisher);
  return publisher_of(publisher)->writer.publish_borrowed(ros_message);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publisher_count_matched_subscriptions(const rmw_publisher_t *publisher,
                                                               size_t *subscription_count) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(subscription_count);
  *subscription_count = publisher_of(publisher)->writer.matched();
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publisher_get_actual_qos(const rmw_publisher_t *publisher,
                                                  rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(qos);
  *qos = publisher_of(publisher)->writer.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publisher_assert_liveliness(const rmw_publisher_t *publisher) try {
  CHECK_HANDLE(publisher);
  return publisher_of(publisher)->writer.assert_liveliness();
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_publisher_wait_for_all_acked(const rmw_publisher_t *publisher,
                                                      rmw_time_t wait_timeout) try {
  CHECK_HANDLE(publisher);
  return publisher_of(publisher)->writer.wait_for_acknowledgements(rmw_myelin::nanoseconds(wait_timeout));
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_gid_for_publisher(const rmw_publisher_t *publisher, rmw_gid_t *gid) try {
  CHECK_HANDLE(publisher);
  CHECK_ARGUMENT(gid);
  auto &writer = publisher_of(publisher)->writer;
  *gid = rmw_myelin::ros_gid(rmw_myelin::gid_of(writer.endpoint().id));
  return RMW_RET_OK;
} CONTAIN

}  // extern "C"
