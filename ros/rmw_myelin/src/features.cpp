// The identity and features of rmw_myelin, serialisation without a topic, and functions that are not supported.
#include <cstring>
#include <exception>

#include "cdr.hpp"
#include "rmw/features.h"
#include "rmw/get_network_flow_endpoints.h"
#include "rmw_dds_common/qos.hpp"
#include "support.hpp"
#include "type_support.hpp"
#if __has_include("rmw/dynamic_message_type_support.h")
#include "rmw/dynamic_message_type_support.h"
#endif

namespace {

rmw_ret_t unsupported(const char *what) {
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("rmw_myelin does not support %s", what);
  return RMW_RET_UNSUPPORTED;
}

}  // namespace

extern "C" {

RMW_PUBLIC const char *rmw_get_implementation_identifier(void) { return rmw_myelin::identifier; }

RMW_PUBLIC const char *rmw_get_serialization_format(void) { return "cdr"; }

RMW_PUBLIC bool rmw_feature_supported(rmw_feature_t feature) {
  return feature == RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER ||
         feature == RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER;
}

RMW_PUBLIC rmw_ret_t rmw_set_log_severity(rmw_log_severity_t severity) {
  return rcutils_logging_set_logger_level(rmw_myelin::identifier, severity) == RCUTILS_RET_OK
             ? RMW_RET_OK
             : RMW_RET_INVALID_ARGUMENT;
}

RMW_PUBLIC rmw_ret_t rmw_qos_profile_check_compatible(const rmw_qos_profile_t publisher_profile,
                                                      const rmw_qos_profile_t subscription_profile,
                                                      rmw_qos_compatibility_type_t *compatibility,
                                                      char *reason, size_t reason_size) {
  return rmw_dds_common::qos_profile_check_compatible(publisher_profile, subscription_profile,
                                                      compatibility, reason, reason_size);
}

RMW_PUBLIC rmw_ret_t rmw_compare_gids_equal(const rmw_gid_t *gid1, const rmw_gid_t *gid2, bool *result) {
  CHECK_HANDLE(gid1);
  CHECK_HANDLE(gid2);
  CHECK_ARGUMENT(result);
  *result = std::memcmp(gid1->data, gid2->data, sizeof(gid1->data)) == 0;
  return RMW_RET_OK;
}

RMW_PUBLIC rmw_ret_t rmw_serialize(const void *ros_message,
                                   const rosidl_message_type_support_t *type_support,
                                   rmw_serialized_message_t *serialized_message) try {
  CHECK_ARGUMENT(ros_message);
  CHECK_ARGUMENT(type_support);
  CHECK_ARGUMENT(serialized_message);
  const auto type = rmw_myelin::message_type(*type_support);
  const size_t bytes = rmw_myelin::cdr::encoded_bytes(*type.plan, ros_message);
  if (serialized_message->buffer_capacity < bytes) {
    const rmw_ret_t resized = rmw_serialized_message_resize(serialized_message, bytes);
    if (resized != RMW_RET_OK) return resized;
  }
  rmw_myelin::cdr::encode(*type.plan, ros_message, serialized_message->buffer, bytes);
  serialized_message->buffer_length = bytes;
  return RMW_RET_OK;
} catch (const std::exception &error) {
  RMW_SET_ERROR_MSG(error.what());
  return RMW_RET_ERROR;
}

RMW_PUBLIC rmw_ret_t rmw_deserialize(const rmw_serialized_message_t *serialized_message,
                                     const rosidl_message_type_support_t *type_support,
                                     void *ros_message) try {
  CHECK_ARGUMENT(serialized_message);
  CHECK_ARGUMENT(type_support);
  CHECK_ARGUMENT(ros_message);
  const auto type = rmw_myelin::message_type(*type_support);
  rmw_myelin::cdr::decode(*type.plan, serialized_message->buffer, serialized_message->buffer_length,
                          ros_message);
  return RMW_RET_OK;
} catch (const std::exception &error) {
  RMW_SET_ERROR_MSG(error.what());
  return RMW_RET_ERROR;
}

RMW_PUBLIC rmw_ret_t rmw_get_serialized_message_size(const rosidl_message_type_support_t *,
                                                     const rosidl_runtime_c__Sequence__bound *,
                                                     size_t *) {
  return unsupported("computing the size of a serialized message in advance");
}

RMW_PUBLIC rmw_ret_t rmw_init_publisher_allocation(const rosidl_message_type_support_t *,
                                                   const rosidl_runtime_c__Sequence__bound *,
                                                   rmw_publisher_allocation_t *) {
  return unsupported("preallocation for publishers");
}

RMW_PUBLIC rmw_ret_t rmw_fini_publisher_allocation(rmw_publisher_allocation_t *) {
  return unsupported("preallocation for publishers");
}

RMW_PUBLIC rmw_ret_t rmw_init_subscription_allocation(const rosidl_message_type_support_t *,
                                                      const rosidl_runtime_c__Sequence__bound *,
                                                      rmw_subscription_allocation_t *) {
  return unsupported("preallocation for subscriptions");
}

RMW_PUBLIC rmw_ret_t rmw_fini_subscription_allocation(rmw_subscription_allocation_t *) {
  return unsupported("preallocation for subscriptions");
}

RMW_PUBLIC rmw_ret_t rmw_subscription_set_content_filter(
    rmw_subscription_t *, const rmw_subscription_content_filter_options_t *) {
  return unsupported("content filters");
}

RMW_PUBLIC rmw_ret_t rmw_subscription_get_content_filter(const rmw_subscription_t *,
                                                         rcutils_allocator_t *,
                                                         rmw_subscription_content_filter_options_t *) {
  return unsupported("content filters");
}

RMW_PUBLIC rmw_ret_t rmw_publisher_get_network_flow_endpoints(const rmw_publisher_t *,
                                                              rcutils_allocator_t *,
                                                              rmw_network_flow_endpoint_array_t *) {
  return unsupported("network flow endpoints");
}

RMW_PUBLIC rmw_ret_t rmw_subscription_get_network_flow_endpoints(const rmw_subscription_t *,
                                                                 rcutils_allocator_t *,
                                                                 rmw_network_flow_endpoint_array_t *) {
  return unsupported("network flow endpoints");
}

#if __has_include("rmw/dynamic_message_type_support.h")
RMW_PUBLIC rmw_ret_t rmw_take_dynamic_message(const rmw_subscription_t *,
                                              rosidl_dynamic_typesupport_dynamic_data_t *, bool *,
                                              rmw_subscription_allocation_t *) {
  return unsupported("dynamic messages");
}

RMW_PUBLIC rmw_ret_t rmw_take_dynamic_message_with_info(const rmw_subscription_t *,
                                                        rosidl_dynamic_typesupport_dynamic_data_t *,
                                                        bool *, rmw_message_info_t *,
                                                        rmw_subscription_allocation_t *) {
  return unsupported("dynamic messages");
}

RMW_PUBLIC rmw_ret_t rmw_serialization_support_init(const char *, rcutils_allocator_t *,
                                                    rosidl_dynamic_typesupport_serialization_support_t *) {
  return unsupported("dynamic messages");
}
#endif

}  // extern "C"
