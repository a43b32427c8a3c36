#include "writer.hpp"

#include <cstring>
#include <stdexcept>

#include "context.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

constexpr uint32_t loans_max = 64;
/// Smaller messages lie in the queue itself: the library copies them there.
constexpr size_t small_bytes = 104;

myelin_publisher *open(myelin_node *node, const Endpoint &endpoint) {
  myelin_topic_options options = publisher_options(endpoint.qos);
  options.dds_type = endpoint.type.name.c_str();
  options.dds_cdr = true;
  myelin_topic *topic = nullptr;
  if (myelin_topic_open(node, endpoint.topic.c_str(), nullptr, &options, &topic) != MYELIN_OK) {
    throw std::runtime_error(myelin_error_message());
  }
  myelin_publisher_options own = MYELIN_INIT(myelin_publisher_options);
  own.timestamps = true;
  own.loans_max = loans_max;
  myelin_publisher *publisher = nullptr;
  const myelin_code code = myelin_publisher_open(topic, &own, &publisher);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(topic);
  if (code != MYELIN_OK) throw std::runtime_error(why);
  return publisher;
}

}  // namespace

Writer::Writer(Node &node, Endpoint endpoint) : node_(node), endpoint_(std::move(endpoint)) {
  publisher_ = open(node.context.node, endpoint_);
  myelin_publisher_endpoint(publisher_, &endpoint_.id);
  node_.context.graph->add(node_, endpoint_);
}

Writer::~Writer() {
  node_.context.graph->remove(node_, endpoint_);
  myelin_publisher_close(publisher_);
}

rmw_ret_t Writer::publish(const void *message, const cdr::RequestHeader *header) try {
  const Plan &plan = *endpoint_.type.plan;
  const size_t bytes = cdr::encoded_bytes(plan, message, header != nullptr);
  if (bytes <= small_bytes) {
    uint8_t encoded[small_bytes];
    cdr::encode(plan, message, encoded, bytes, header);
    return publish_serialized(encoded, bytes);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  myelin_loan loan = MYELIN_INIT(myelin_loan);
  myelin_code code = myelin_publisher_loan(publisher_, bytes, &loan);
  if (code != MYELIN_OK) return fail(code, endpoint_.topic.c_str());
  try {
    cdr::encode(plan, message, static_cast<uint8_t *>(loan.data), bytes, header);
  } catch (...) {
    myelin_publisher_discard(publisher_, &loan);
    throw;
  }
  code = myelin_publisher_publish(publisher_, &loan, nullptr);
  return code == MYELIN_OK ? RMW_RET_OK : fail(code, endpoint_.topic.c_str());
} catch (const std::exception &error) {
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("%s: %s", endpoint_.topic.c_str(), error.what());
  return RMW_RET_ERROR;
}

rmw_ret_t Writer::publish_serialized(const uint8_t *data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const myelin_code code = myelin_publisher_publish_copy(publisher_, data, bytes, nullptr);
  return code == MYELIN_OK ? RMW_RET_OK : fail(code, endpoint_.topic.c_str());
}

size_t Writer::matched() {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t subscribers = 0;
  myelin_publisher_matched(publisher_, &subscribers);
  return subscribers;
}

rmw_ret_t Writer::assert_liveliness() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const myelin_code code = myelin_publisher_assert_liveliness(publisher_);
  return code == MYELIN_OK ? RMW_RET_OK : fail(code, endpoint_.topic.c_str());
}

rmw_ret_t Writer::wait_for_acknowledgements(uint64_t limit_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const myelin_code code = myelin_publisher_wait_for_acknowledgements(publisher_, limit_ns);
  if (code == MYELIN_NOTHING) return RMW_RET_TIMEOUT;
  return code == MYELIN_OK ? RMW_RET_OK : fail(code, endpoint_.topic.c_str());
}

void Writer::poll_events() {
  myelin_event event = MYELIN_INIT(myelin_event);
  const std::lock_guard<std::mutex> lock(mutex_);
  while (myelin_publisher_event(publisher_, &event) == MYELIN_OK) events_.happened(event, true);
}

rmw_ret_t Writer::borrow(void **) {
  RMW_SET_ERROR_MSG("loaned messages are not supported");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t Writer::publish_borrowed(void *) {
  RMW_SET_ERROR_MSG("loaned messages are not supported");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t Writer::give_back(void *) {
  RMW_SET_ERROR_MSG("loaned messages are not supported");
  return RMW_RET_UNSUPPORTED;
}

}  // namespace rmw_myelin
