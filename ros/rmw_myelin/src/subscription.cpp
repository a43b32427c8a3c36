#include "subscription.hpp"

#include <cstring>
#include <memory>

#include "cdr.hpp"
#include "context.hpp"
#include "names.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

Subscription *subscription_of(const rmw_subscription_t *subscription) {
  return static_cast<Subscription *>(subscription->data);
}

void fill_info(Subscription &subscription, const Sample &sample, rmw_message_info_t *info) {
  const uint64_t received = ++subscription.received;
  if (info == nullptr) return;
  info->source_timestamp = source_ns(sample);
  info->received_timestamp = sample.received_ns;
  info->publication_sequence_number = sample->sequence + 1;
  info->reception_sequence_number = received;
  info->publisher_gid = ros_gid(gid_of(sample->publisher));
  info->from_intra_process = false;
}

/// Decodes the next message directly from shared memory.
rmw_ret_t take(Subscription &subscription, void *message, bool *taken, rmw_message_info_t *info) {
  *taken = false;
  Sample sample;
  bool is_there = false;
  const rmw_ret_t result = subscription.reader.take(sample, is_there);
  if (result != RMW_RET_OK || !is_there) return result;
  const MessageType &type = subscription.reader.endpoint().type;
  try {
    cdr::decode(*type.plan, sample.data(), sample.bytes(), message);
  } catch (const std::exception &error) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "%s: a message that is not a %s was dropped: %s",
                            subscription.topic_name.c_str(), type.name.c_str(), error.what());
    return RMW_RET_OK;
  }
  fill_info(subscription, sample, info);
  *taken = true;
  return RMW_RET_OK;
}

rmw_ret_t take_serialized(Subscription &subscription, rmw_serialized_message_t *to, bool *taken,
                          rmw_message_info_t *info) {
  *taken = false;
  Sample sample;
  bool is_there = false;
  rmw_ret_t result = subscription.reader.take(sample, is_there);
  if (result != RMW_RET_OK || !is_there) return result;
  if (to->buffer_capacity < sample.bytes()) {
    result = rmw_serialized_message_resize(to, sample.bytes());
    if (result != RMW_RET_OK) return result;
  }
  std::memcpy(to->buffer, sample.data(), sample.bytes());
  to->buffer_length = sample.bytes();
  fill_info(subscription, sample, info);
  *taken = true;
  return RMW_RET_OK;
}

/// Lends the next message in place, where its publisher wrote it. Small messages are not aligned there, and are copied.
rmw_ret_t take_loaned(Subscription &subscription, void **message, bool *taken, rmw_message_info_t *info) {
  *taken = false;
  const MessageType &type = subscription.reader.endpoint().type;
  if (!type.plan->plain_message) {
    RMW_SET_ERROR_MSG("messages of this type cannot be loaned");
    return RMW_RET_UNSUPPORTED;
  }
  Loaned loaned;
  bool is_there = false;
  const rmw_ret_t result = subscription.reader.take(loaned.sample, is_there);
  if (result != RMW_RET_OK || !is_there) return result;
  const Sample &sample = loaned.sample;
  const uint8_t *body = sample.data() + cdr::header_bytes;
  const char *error = cdr::header_error(sample.data(), sample.bytes());
  if (error == nullptr && sample.bytes() < cdr::header_bytes + *type.plan->plain_message) {
    error = "it is too short";
  }
  if (error != nullptr) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "%s: a message that is not a %s was dropped: %s",
                            subscription.topic_name.c_str(), type.name.c_str(), error);
    return RMW_RET_OK;
  }
  fill_info(subscription, sample, info);
  if (reinterpret_cast<uintptr_t>(body) % alignof(uint64_t) != 0) {
    loaned.copy.resize((type.plan->bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(loaned.copy.data(), body, *type.plan->plain_message);
    body = reinterpret_cast<const uint8_t *>(loaned.copy.data());
    loaned.sample = Sample();
  }
  // rmw's interface has no const here, but the memory is mapped read-only: the user must not write to it.
  *message = const_cast<uint8_t *>(body);
  const std::lock_guard<std::mutex> lock(subscription.mutex);
  subscription.lent.emplace(*message, std::move(loaned));
  *taken = true;
  return RMW_RET_OK;
}

}  // namespace

Subscription::Subscription(Node &node, Endpoint endpoint, const rmw_subscription_options_t &options,
                           std::string name)
    : reader(node, std::move(endpoint),
             options.ignore_local_publications
                 ? Reader::Filter([this](const Sample &sample) {
                     return !is_of_one_node(sample->publisher, reader.endpoint().id);
                   })
                 : Reader::Filter()),
      topic_name(std::move(name)) {}

}  // namespace rmw_myelin

using rmw_myelin::Endpoint;
using rmw_myelin::Node;
using rmw_myelin::Subscription;
using rmw_myelin::subscription_of;

extern "C" {

RMW_PUBLIC rmw_subscription_t *rmw_create_subscription(
    const rmw_node_t *node, const rosidl_message_type_support_t *type_support,
    const char *topic_name, const rmw_qos_profile_t *qos_policies,
    const rmw_subscription_options_t *subscription_options) try {
  CHECK_HANDLE_OR_NULL(node);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(topic_name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_policies, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(subscription_options, nullptr);
  if (!rmw_myelin::check_name(topic_name, *qos_policies)) return nullptr;
  if (subscription_options->require_unique_network_flow_endpoints ==
      RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED) {
    RMW_SET_ERROR_MSG("unique network flow endpoints are not supported");
    return nullptr;
  }
  Endpoint endpoint{false, rmw_myelin::topic_name(topic_name, *qos_policies), {}, {}};
  if (!rmw_myelin::resolve_subscription(node, topic_name, *qos_policies, endpoint.qos)) return nullptr;
  try {
    endpoint.type = rmw_myelin::message_type(*type_support);
    auto &own = *static_cast<Node *>(node->data);
    auto made = std::make_unique<Subscription>(own, std::move(endpoint), *subscription_options, topic_name);
    auto handle = std::make_unique<rmw_subscription_t>();
    handle->implementation_identifier = rmw_myelin::identifier;
    handle->topic_name = made->topic_name.c_str();
    handle->options = *subscription_options;
    handle->can_loan_messages = made->reader.endpoint().type.plan->plain_message.has_value();
    handle->is_cft_enabled = false;
    handle->data = made.release();
    return handle.release();
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("cannot create a subscription of %s: %s", topic_name,
                                         error.what());
    return nullptr;
  }
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_subscription(rmw_node_t *node, rmw_subscription_t *subscription) try {
  CHECK_HANDLE(node);
  CHECK_HANDLE(subscription);
  delete subscription_of(subscription);
  delete subscription;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take(const rmw_subscription_t *subscription, void *ros_message, bool *taken,
                              rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(ros_message);
  CHECK_ARGUMENT(taken);
  return rmw_myelin::take(*subscription_of(subscription), ros_message, taken, nullptr);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_with_info(const rmw_subscription_t *subscription, void *ros_message,
                                        bool *taken, rmw_message_info_t *message_info,
                                        rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(ros_message);
  CHECK_ARGUMENT(taken);
  CHECK_ARGUMENT(message_info);
  return rmw_myelin::take(*subscription_of(subscription), ros_message, taken, message_info);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_sequence(const rmw_subscription_t *subscription, size_t count,
                                       rmw_message_sequence_t *message_sequence,
                                       rmw_message_info_sequence_t *message_info_sequence,
                                       size_t *taken, rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(message_sequence);
  CHECK_ARGUMENT(message_info_sequence);
  CHECK_ARGUMENT(taken);
  if (count == 0 || count > message_sequence->capacity || count > message_info_sequence->capacity) {
    RMW_SET_ERROR_MSG("count is 0, or larger than the capacity of a sequence");
    return RMW_RET_INVALID_ARGUMENT;
  }
  rmw_ret_t result = RMW_RET_OK;
  for (*taken = 0; *taken < count; ++*taken) {
    bool is_there = false;
    result = rmw_myelin::take(*subscription_of(subscription), message_sequence->data[*taken], &is_there,
                              &message_info_sequence->data[*taken]);
    if (result != RMW_RET_OK || !is_there) break;
  }
  message_sequence->size = *taken;
  message_info_sequence->size = *taken;
  return result;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_serialized_message(const rmw_subscription_t *subscription,
                                                 rmw_serialized_message_t *serialized_message,
                                                 bool *taken, rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(serialized_message);
  CHECK_ARGUMENT(taken);
  return rmw_myelin::take_serialized(*subscription_of(subscription), serialized_message, taken, nullptr);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_serialized_message_with_info(const rmw_subscription_t *subscription,
                                                           rmw_serialized_message_t *serialized_message,
                                                           bool *taken, rmw_message_info_t *message_info,
                                                           rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(serialized_message);
  CHECK_ARGUMENT(taken);
  CHECK_ARGUMENT(message_info);
  return rmw_myelin::take_serialized(*subscription_of(subscription), serialized_message, taken,
                                     message_info);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_loaned_message(const rmw_subscription_t *subscription,
                                             void **loaned_message, bool *taken,
                                             rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(loaned_message);
  CHECK_ARGUMENT(taken);
  return rmw_myelin::take_loaned(*subscription_of(subscription), loaned_message, taken, nullptr);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_loaned_message_with_info(const rmw_subscription_t *subscription,
                                                       void **loaned_message, bool *taken,
                                                       rmw_message_info_t *message_info,
                                                       rmw_subscription_allocation_t *) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(loaned_message);
  CHECK_ARGUMENT(taken);
  CHECK_ARGUMENT(message_info);
  return rmw_myelin::take_loaned(*subscription_of(subscription), loaned_message, taken, message_info);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_return_loaned_message_from_subscription(const rmw_subscription_t *subscription,
                                                                 void *loaned_message) try {
  CHECK_HANDLE(subscription);
  CHECK_CAN_LOAN(subscription);
  CHECK_ARGUMENT(loaned_message);
  Subscription &own = *subscription_of(subscription);
  const std::lock_guard<std::mutex> lock(own.mutex);
  if (own.lent.erase(loaned_message) == 0) {
    RMW_SET_ERROR_MSG("the message was not loaned by this subscription");
    return RMW_RET_ERROR;
  }
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_subscription_count_matched_publishers(const rmw_subscription_t *subscription,
                                                               size_t *publisher_count) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(publisher_count);
  *publisher_count = subscription_of(subscription)->reader.matched();
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_subscription_get_actual_qos(const rmw_subscription_t *subscription,
                                                     rmw_qos_profile_t *qos) try {
  CHECK_HANDLE(subscription);
  CHECK_ARGUMENT(qos);
  *qos = subscription_of(subscription)->reader.endpoint().qos;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_subscription_set_on_new_message_callback(rmw_subscription_t *subscription,
                                                                  rmw_event_callback_t callback,
                                                                  const void *user_data) try {
  CHECK_HANDLE(subscription);
  return subscription_of(subscription)->reader.set_callback(callback, user_data);
} CONTAIN

}  // extern "C"
