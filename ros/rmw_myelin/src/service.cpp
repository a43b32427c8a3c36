#include "service.hpp"

#include <cstring>
#include <memory>

#include "context.hpp"
#include "names.hpp"
#include "qos.hpp"

namespace rmw_myelin {

Service::Service(Node &node, Endpoint requests, Endpoint shared, std::string given)
    : reader(node, std::move(requests), {}),
      writer(node, std::move(shared)),
      replies(reader, writer.endpoint()),
      name(std::move(given)) {}

bool service_endpoints(const rosidl_service_type_support_t &type_support, const char *name,
                       const rmw_qos_profile_t &requested, Endpoint &requests, Endpoint &replies) {
  if (!check_name(name, requested)) return false;
  rmw_qos_profile_t actual;
  if (!resolve_service(requested, actual)) return false;
  ServiceType type = service_type(type_support);
  requests = {false, request_name(name, actual), std::move(type.request), actual, true};
  replies = {false, reply_name(name, actual), std::move(type.response), actual, true, true};
  return true;
}

rmw_ret_t take_message(Reader &reader, const std::string &name, rmw_service_info_t *info, void *message,
                       bool *taken) {
  *taken = false;
  Sample sample;
  bool is_there = false;
  const rmw_ret_t result = reader.take(sample, is_there);
  if (result != RMW_RET_OK || !is_there) return result;
  const MessageType &type = reader.endpoint().type;
  cdr::RequestHeader header{};
  try {
    cdr::decode(*type.plan, sample.data(), sample.bytes(), message, &header);
  } catch (const std::exception &error) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "%s: a message that is not a %s was dropped: %s", name.c_str(),
                            type.name.c_str(), error.what());
    return RMW_RET_OK;
  }
  info->source_timestamp = source_ns(sample);
  info->received_timestamp = sample.received_ns;
  info->request_id.sequence_number = header.sequence;
  std::memset(info->request_id.writer_guid, 0, sizeof(info->request_id.writer_guid));
  std::memcpy(info->request_id.writer_guid, &header.client, sizeof(header.client));
  const uint64_t publisher = sample->publisher;
  std::memcpy(info->request_id.writer_guid + sizeof(header.client), &publisher, sizeof(publisher));
  *taken = true;
  return RMW_RET_OK;
}

static Service *service_of(const rmw_service_t *service) { return static_cast<Service *>(service->data); }

}  // namespace rmw_myelin

using rmw_myelin::Endpoint;
using rmw_myelin::Node;
using rmw_myelin::Service;
using rmw_myelin::service_of;

extern "C" {

RMW_PUBLIC rmw_service_t *rmw_create_service(const rmw_node_t *node,
                                             const rosidl_service_type_support_t *type_support,
                                             const char *service_name,
                                             const rmw_qos_profile_t *qos_profile) try {
  CHECK_HANDLE_OR_NULL(node);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(service_name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_profile, nullptr);
  try {
    Endpoint requests{}, replies{};
    if (!rmw_myelin::service_endpoints(*type_support, service_name, *qos_profile, requests, replies)) {
      return nullptr;
    }
    replies.is_publisher = true;
    auto &own = *static_cast<Node *>(node->data);
    auto made = std::make_unique<Service>(own, std::move(requests), std::move(replies), service_name);
    auto handle = std::make_unique<rmw_service_t>();
    handle->implementation_identifier = rmw_myelin::identifier;
    handle->service_name = made->name.c_str();
    handle->data = made.release();
    return handle.release();
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("cannot create the service %s: %s", service_name, error.what());
    return nullptr;
  }
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_service(rmw_node_t *node, rmw_service_t *service) try {
  CHECK_HANDLE(node);
  CHECK_HANDLE(service);
  delete service_of(service);
  delete service;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_request(const rmw_service_t *service, rmw_service_info_t *request_header,
                                      void *ros_request, bool *taken) try {
  CHECK_HANDLE(service);
  CHECK_ARGUMENT(request_header);
  CHECK_ARGUMENT(ros_request);
  CHECK_ARGUMENT(taken);
  Service &own = *service_of(service);
  return rmw_myelin::take_message(own.reader, own.name, request_header, ros_request, taken);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_send_response(const rmw_service_t *service, rmw_request_id_t *request_header,
                                       void *ros_response) try {
  CHECK_HANDLE(service);
  CHECK_ARGUMENT(request_header);
  CHECK_ARGUMENT(ros_response);
  rmw_myelin::cdr::RequestHeader header{};
  uint64_t publisher;
  std::memcpy(&header.client, request_header->writer_guid, sizeof header.client);
  std::memcpy(&publisher, request_header->writer_guid + sizeof header.client, sizeof publisher);
  header.sequence = request_header->sequence_number;
  Service &own = *service_of(service);
  // Requests from other hosts come through a proxy, which does not belong to the client's node.
  const bool is_here = rmw_myelin::is_of_one_node(header.client, publisher);
  return is_here ? own.replies.publish(publisher, ros_response, header) : own.writer.publish(ros_response, &header);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_service_request_subscription_get_actual_qos(const rmw_service_t *service,
                                                                     rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(service);
  CHECK_ARGUMENT(qos);
  *qos = service_of(service)->reader.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_service_response_publisher_get_actual_qos(const rmw_service_t *service,
                                                                   rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(service);
  CHECK_ARGUMENT(qos);
  *qos = service_of(service)->writer.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_service_set_on_new_request_callback(rmw_service_t *service,
                                                             rmw_event_callback_t callback,
                                                             const void *user_data) try {
  CHECK_HANDLE(service);
  return service_of(service)->reader.set_callback(callback, user_data);
} CONTAIN

}  // extern "C"
