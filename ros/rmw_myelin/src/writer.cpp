#include "writer.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "context.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

constexpr uint32_t loans_max = 64;
constexpr uint64_t acknowledgement_slice_ns = 10'000'000;
/// Delay until events are taken again, if a publish in progress prevented it.
constexpr uint64_t event_retry_ns = 10'000'000;
/// Up to this size the library copies a message into the ring.
constexpr size_t small_bytes = 104;

myelin_publisher *open(myelin_node *node, const Endpoint &endpoint) {
  myelin_topic *topic = open_topic(node, endpoint, publisher_options(endpoint));
  myelin_publisher_options own = MYELIN_INIT(myelin_publisher_options);
  own.timestamps = true;
  own.loans_max = loans_max;
  own.this_host_only = endpoint.is_way_back();
  const uint64_t lease = nanoseconds(endpoint.qos.liveliness_lease_duration);
  own.liveliness_ns = lease == MYELIN_FOREVER ? 0 : lease;
  myelin_publisher *publisher = nullptr;
  const myelin_code code = myelin_publisher_open(topic, &own, &publisher);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(topic);
  if (code != MYELIN_OK) throw std::runtime_error(why);
  return publisher;
}

}  // namespace

Writer::Writer(Node &node, Endpoint endpoint) : Writer(node.context, &node, std::move(endpoint)) {}

Writer::Writer(rmw_context_impl_t &context, Endpoint way_back) : Writer(context, nullptr, std::move(way_back)) {}

Writer::Writer(rmw_context_impl_t &context, Node *node, Endpoint endpoint)
    : context_(context),
      node_(node),
      endpoint_(std::move(endpoint)),
      events_(context.graph->guard()),
      peers_(endpoint_, *context.graph, events_) {
  if (node_ != nullptr) endpoint_.node = node_->name;
  publisher_ = open(context.node, endpoint_);
  myelin_publisher_endpoint(publisher_, &endpoint_.id);
  deadline_ns_ = nanoseconds(endpoint_.qos.deadline);
  if (endpoint_.qos.liveliness == RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC) {
    lease_ns_ = nanoseconds(endpoint_.qos.liveliness_lease_duration);
  }
  if (node_ == nullptr) return;
  context_.add(*this);
  myelin_publisher_on_event(publisher_, context_.graph->guard());
}

Writer::~Writer() {
  if (node_ != nullptr) context_.remove(*this);
  Writer::close();
}

void Writer::close() {
  myelin_publisher_close(publisher_);
  publisher_ = nullptr;
}

template <typename Call>
rmw_ret_t Writer::use(Call call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const myelin_code code = call();
  const rmw_ret_t result = code == MYELIN_OK ? RMW_RET_OK : fail(code, endpoint_.topic.c_str());
  if (is_event_wanted_.load(std::memory_order_relaxed)) take_pending();
  return result;
}

rmw_ret_t Writer::publish(const void *message, const cdr::RequestHeader *header) try {
  const Plan &plan = *endpoint_.type.plan;
  const size_t bytes = cdr::encoded_bytes(plan, message, header != nullptr);
  if (bytes <= small_bytes) {
    uint8_t encoded[small_bytes];
    cdr::encode(plan, message, encoded, bytes, header);
    return publish_serialized(encoded, bytes);
  }
  return use([&] {
    myelin_loan loan = MYELIN_INIT(myelin_loan);
    const myelin_code code = myelin_publisher_loan(publisher_, bytes, &loan);
    if (code != MYELIN_OK) return code;
    try {
      cdr::encode(plan, message, static_cast<uint8_t *>(loan.data), bytes, header);
    } catch (...) {
      myelin_publisher_discard(publisher_, &loan);
      throw;
    }
    moved();
    return myelin_publisher_publish(publisher_, &loan, nullptr);
  });
} catch (const std::exception &error) {
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("%s: %s", endpoint_.topic.c_str(), error.what());
  return RMW_RET_ERROR;
}

rmw_ret_t Writer::publish_serialized(const uint8_t *data, size_t bytes) {
  return use([&] {
    moved();
    return myelin_publisher_publish_copy(publisher_, data, bytes, nullptr);
  });
}

rmw_ret_t Writer::borrow(void **message) {
  // With the padding behind the last member: an assignment to the message writes it too.
  const size_t bytes = cdr::header_bytes + endpoint_.type.plan->bytes;
  return use([&] {
    myelin_loan loan = MYELIN_INIT(myelin_loan);
    // A smaller loan would lie in the ring, where the message is not aligned.
    const myelin_code code = myelin_publisher_loan(publisher_, std::max(bytes, small_bytes + 1), &loan);
    if (code != MYELIN_OK) return code;
    auto *data = static_cast<uint8_t *>(loan.data);
    cdr::put_header(data);
    try {
      loans_.emplace(data + cdr::header_bytes, loan);
    } catch (...) {
      myelin_publisher_discard(publisher_, &loan);
      throw;
    }
    *message = data + cdr::header_bytes;
    return code;
  });
}

rmw_ret_t Writer::publish_borrowed(void *message) {
  myelin_loan loan;
  if (!take_loan(message, loan)) return RMW_RET_INVALID_ARGUMENT;
  return use([&] {
    moved();
    return myelin_publisher_publish(publisher_, &loan, nullptr);
  });
}

rmw_ret_t Writer::give_back(void *message) {
  myelin_loan loan;
  if (!take_loan(message, loan)) return RMW_RET_ERROR;
  return use([&] { return myelin_publisher_discard(publisher_, &loan); });
}

/// Sets the error and returns false if `message` is not on loan.
bool Writer::take_loan(void *message, myelin_loan &loan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = loans_.find(message);
  if (found == loans_.end()) {
    RMW_SET_ERROR_MSG("the message was not loaned by this publisher");
    return false;
  }
  loan = found->second;
  loans_.erase(found);
  return true;
}

size_t Writer::matched() {
  poll_events();
  return peers_.count();
}

rmw_ret_t Writer::wait_for_match(uint64_t limit_ns) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const myelin_code code = myelin_publisher_wait_for_match(publisher_, 1, limit_ns);
    if (code < 0) return fail(code, endpoint_.topic.c_str());
  }
  return matched() > 0 ? RMW_RET_OK : RMW_RET_TIMEOUT;
}

rmw_ret_t Writer::assert_liveliness() {
  return use([&] {
    moved();
    return myelin_publisher_assert_liveliness(publisher_);
  });
}

rmw_ret_t Writer::wait_for_acknowledgements(uint64_t limit_ns) {
  const uint64_t began_ns = myelin_now();
  for (;;) {
    const uint64_t gone_ns = myelin_now() - began_ns;
    // In slices, so that other threads can publish meanwhile and the graph's thread can take events.
    const uint64_t slice_ns = std::min(acknowledgement_slice_ns, limit_ns - std::min(limit_ns, gone_ns));
    const std::lock_guard<std::mutex> lock(mutex_);
    const myelin_code code = myelin_publisher_wait_for_acknowledgements(publisher_, slice_ns);
    if (code < 0) return fail(code, endpoint_.topic.c_str());
    if (code == MYELIN_OK) return RMW_RET_OK;
    if (gone_ns >= limit_ns) return RMW_RET_TIMEOUT;
  }
}

void Writer::take_pending() {
  is_event_wanted_ = false;
  const std::lock_guard<std::mutex> lock(pending_mutex_);
  myelin_event event = MYELIN_INIT(myelin_event);
  while (myelin_publisher_event(publisher_, &event) == MYELIN_OK) {
    pending_.emplace_back(event, event.text == nullptr ? "" : event.text);
  }
}

uint64_t Writer::poll_events() {
  const uint64_t next_ns = take_events();
  peers_.log();
  return next_ns;
}

uint64_t Writer::take_events() {
  const std::lock_guard<std::mutex> in_order(events_mutex_);
  uint64_t next_ns = MYELIN_FOREVER;
  if (const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock) {
    take_pending();
  } else {
    // A publish is in progress and may block. It takes the events afterwards.
    is_event_wanted_ = true;
    next_ns = myelin_now() + event_retry_ns;
  }
  std::vector<std::pair<myelin_event, std::string>> new_events;
  {
    const std::lock_guard<std::mutex> lock(pending_mutex_);
    new_events.swap(pending_);
  }
  for (const auto &[event, text] : new_events) peers_.happened(event, text);
  return std::min(next_ns, count_missed(myelin_now()));
}

void Writer::moved() {
  if (deadline_ns_ == MYELIN_FOREVER && lease_ns_ == MYELIN_FOREVER) return;
  const uint64_t now_ns = myelin_now();
  const bool is_first = lease_at_ns_ == 0 && deadline_at_ns_ == 0;
  deadline_at_ns_ = deadline_ns_ == MYELIN_FOREVER ? MYELIN_FOREVER : now_ns + deadline_ns_;
  const bool was_dead = lease_at_ns_ == MYELIN_FOREVER && lease_ns_ != MYELIN_FOREVER;
  lease_at_ns_ = lease_ns_ == MYELIN_FOREVER ? MYELIN_FOREVER : now_ns + lease_ns_;
  // The graph's thread does not wait for these times yet.
  if (is_first || was_dead) myelin_guard_condition_trigger(context_.graph->guard());
}

uint64_t Writer::count_missed(uint64_t now_ns) {
  uint64_t next_ns = MYELIN_FOREVER;
  uint64_t at_ns = deadline_at_ns_;
  if (deadline_ns_ != MYELIN_FOREVER && at_ns != 0) {
    while (at_ns <= now_ns) {
      // The exchange fails if a message was published meanwhile. `at_ns` is then the new deadline.
      if (!deadline_at_ns_.compare_exchange_strong(at_ns, at_ns + deadline_ns_)) continue;
      at_ns += deadline_ns_;
      events_.count_once(RMW_EVENT_OFFERED_DEADLINE_MISSED);
    }
    next_ns = at_ns;
  }
  at_ns = lease_at_ns_;
  if (lease_ns_ != MYELIN_FOREVER && at_ns != 0 && at_ns != MYELIN_FOREVER) {
    if (at_ns <= now_ns && lease_at_ns_.compare_exchange_strong(at_ns, MYELIN_FOREVER)) {
      events_.count_once(RMW_EVENT_LIVELINESS_LOST);
      at_ns = MYELIN_FOREVER;
    }
    next_ns = std::min(next_ns, at_ns);
  }
  return next_ns;
}

}  // namespace rmw_myelin
