#include "client.hpp"

#include <memory>

#include "context.hpp"
#include "service.hpp"

namespace rmw_myelin {

/// Turns the shared reply topic into the reply topic of one client. `client` is the id of the publisher of the client's
/// requests.
static Endpoint reply_topic_of(Endpoint replies, uint64_t client) {
  replies.client = client;
  return replies;
}

Client::Client(Node &node, Endpoint requests, Endpoint replies, std::string given)
    : writer(node, std::move(requests)),
      reader(node, reply_topic_of(std::move(replies), writer.endpoint().id),
             [this](const Sample &sample) {
               return cdr::request_header(sample.data(), sample.bytes()).client == id();
             }),
      name(std::move(given)) {}

static Client *client_of(const rmw_client_t *client) { return static_cast<Client *>(client->data); }

}  // namespace rmw_myelin

using rmw_myelin::Client;
using rmw_myelin::client_of;
using rmw_myelin::Endpoint;
using rmw_myelin::Node;

extern "C" {

RMW_PUBLIC rmw_client_t *rmw_create_client(const rmw_node_t *node,
                                           const rosidl_service_type_support_t *type_support,
                                           const char *service_name,
                                           const rmw_qos_profile_t *qos_policies) try {
  CHECK_HANDLE_OR_NULL(node);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(service_name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_policies, nullptr);
  try {
    Endpoint requests{}, replies{};
    if (!rmw_myelin::service_endpoints(*type_support, service_name, *qos_policies, requests, replies)) {
      return nullptr;
    }
    requests.is_publisher = true;
    auto &own = *static_cast<Node *>(node->data);
    auto made = std::make_unique<Client>(own, std::move(requests), std::move(replies), service_name);
    auto handle = std::make_unique<rmw_client_t>();
    handle->implementation_identifier = rmw_myelin::identifier;
    handle->service_name = made->name.c_str();
    handle->data = made.release();
    return handle.release();
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("cannot create a client of %s: %s", service_name, error.what());
    return nullptr;
  }
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_client(rmw_node_t *node, rmw_client_t *client) try {
  CHECK_HANDLE(node);
  CHECK_HANDLE(client);
  delete client_of(client);
  delete client;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_send_request(const rmw_client_t *client, const void *ros_request,
                                      int64_t *sequence_id) try {
  CHECK_HANDLE(client);
  CHECK_ARGUMENT(ros_request);
  CHECK_ARGUMENT(sequence_id);
  Client &own = *client_of(client);
  const rmw_myelin::cdr::RequestHeader header{own.id(), ++own.last_sequence};
  *sequence_id = header.sequence;
  own.reader.expect();
  return own.writer.publish(ros_request, &header);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_response(const rmw_client_t *client, rmw_service_info_t *request_header,
                                       void *ros_response, bool *taken) try {
  CHECK_HANDLE(client);
  CHECK_ARGUMENT(request_header);
  CHECK_ARGUMENT(ros_response);
  CHECK_ARGUMENT(taken);
  Client &own = *client_of(client);
  return rmw_myelin::take_message(own.reader, own.name, request_header, ros_response, taken);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_client_request_publisher_get_actual_qos(const rmw_client_t *client,
                                                                 rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(client);
  CHECK_ARGUMENT(qos);
  *qos = client_of(client)->writer.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_client_response_subscription_get_actual_qos(const rmw_client_t *client,
                                                                     rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(client);
  CHECK_ARGUMENT(qos);
  *qos = client_of(client)->reader.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_service_server_is_available(const rmw_node_t *node, const rmw_client_t *client,
                                                     bool *is_available) try {
  RMW_CHECK_ARGUMENT_FOR_NULL(node, RET_OF_NULL);
  RMW_CHECK_ARGUMENT_FOR_NULL(client, RET_OF_NULL);
  RMW_CHECK_ARGUMENT_FOR_NULL(is_available, RET_OF_NULL);
  CHECK_HANDLE(node);
  CHECK_HANDLE(client);
  Client &own = *client_of(client);
  *is_available = own.writer.matched() > 0 && own.reader.matched() > 0;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_client_set_on_new_response_callback(rmw_client_t *client,
                                                             rmw_event_callback_t callback,
                                                             const void *user_data) try {
  CHECK_HANDLE(client);
  return client_of(client)->reader.set_callback(callback, user_data);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_get_gid_for_client(const rmw_client_t *client, rmw_gid_t *gid) try {
  CHECK_HANDLE(client);
  CHECK_ARGUMENT(gid);
  Client &own = *client_of(client);
  *gid = rmw_myelin::ros_gid(rmw_myelin::gid_of(own.writer.endpoint().id));
  return RMW_RET_OK;
} CONTAIN

}  // extern "C"
