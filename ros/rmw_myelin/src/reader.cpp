#include "reader.hpp"

#include <algorithm>
#include <stdexcept>

#include "context.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

/// Loaned messages and samples taken ahead are held; and who holds more is told.
constexpr uint32_t held_beyond_depth = 64;
constexpr uint32_t held_max = 4096;
/// Parameter events and logs come from all nodes there are.
constexpr uint32_t publishers_max = 4096;

myelin_subscriber *open(myelin_node *node, const Endpoint &endpoint) {
  const myelin_topic_options options = subscriber_options(endpoint);
  myelin_topic *topic = open_topic(node, endpoint, options);
  myelin_subscriber_options own = MYELIN_INIT(myelin_subscriber_options);
  own.held_max = std::min(options.depth + held_beyond_depth, held_max);
  own.publishers_max = publishers_max;
  if (endpoint.qos.liveliness == RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC) {
    const uint64_t lease = nanoseconds(endpoint.qos.liveliness_lease_duration);
    own.liveliness_ns = lease == MYELIN_FOREVER ? 0 : lease;
  }
  myelin_subscriber *subscriber = nullptr;
  const myelin_code code = myelin_subscriber_open(topic, &own, &subscriber);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(topic);
  if (code != MYELIN_OK) throw std::runtime_error(why);
  return subscriber;
}

}  // namespace

Reader::Reader(Node &node, Endpoint endpoint, Filter filter)
    : node_(node),
      endpoint_(std::move(endpoint)),
      filter_(std::move(filter)),
      peers_(endpoint_, *node.context.graph, events_) {
  subscriber_ = open(node.context.node, endpoint_);
  myelin_subscriber_endpoint(subscriber_, &endpoint_.id);
  node_.context.graph->add(node_, endpoint_);
  node_.context.add(*this);
  myelin_subscriber_on_event(subscriber_, node_.context.graph->guard());
}

Reader::~Reader() {
  node_.context.remove(*this);
  node_.context.graph->remove(node_, endpoint_);
  if (is_listened_to()) node_.context.listener->remove(*this);
  if (WaitSet *set = set_) {
    const std::lock_guard<std::mutex> lock(set->mutex_);
    set->detach(*this);
  }
  Reader::close();
}

void Reader::close() {
  taken_.clear();
  myelin_subscriber_close(subscriber_);
  subscriber_ = nullptr;
}

bool Reader::take_from_library(Sample &sample, myelin_code &code) {
  for (;;) {
    code = myelin_subscriber_take(subscriber_, sample.out());
    if (code != MYELIN_OK) return false;
    sample.received_ns = wall_ns();
    if (sample->lost_before > 0) count_lost(sample->lost_before);
    if (peers_.accepts(sample) && (!filter_ || filter_(sample))) return true;
  }
}

rmw_ret_t Reader::take(Sample &sample, bool &taken) {
  const std::lock_guard<std::mutex> lock(mutex_);
  myelin_code code = MYELIN_OK;
  if (taken_.empty()) {
    taken = take_from_library(sample, code);
    return code < 0 ? fail(code, endpoint_.topic.c_str()) : RMW_RET_OK;
  }
  // What has come since may be newer than the depth allows of what was taken ahead.
  if (endpoint_.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST) {
    Sample newer;
    while (take_from_library(newer, code)) keep(std::move(newer));
  }
  sample = std::move(taken_.front());
  taken_.pop_front();
  taken_count_.store(taken_.size(), std::memory_order_release);
  if (taken_.empty()) arrived_.clear();
  taken = true;
  return RMW_RET_OK;
}

size_t Reader::matched() {
  poll_events();
  return peers_.fitting();
}

bool Reader::take_ahead() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!taken_.empty()) return true;
  Sample sample;
  myelin_code code;
  if (!take_from_library(sample, code)) return false;
  keep(std::move(sample));
  return true;
}

void Reader::keep(Sample sample) {
  const bool keeps_all = endpoint_.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  if (taken_.size() >= (keeps_all ? keep_all_depth : endpoint_.qos.depth)) {
    taken_.pop_front();
    count_lost(1);
  }
  taken_.push_back(std::move(sample));
  taken_count_.store(taken_.size(), std::memory_order_release);
}

void Reader::count_lost(uint64_t samples) {
  events_.count(RMW_EVENT_MESSAGE_LOST,
                [samples](EventState &state) { state.add(static_cast<int64_t>(samples)); });
}

void Reader::listen() {
  size_t count = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Sample sample;
    myelin_code code;
    while (take_from_library(sample, code)) {
      keep(std::move(sample));
      ++count;
    }
  }
  if (count == 0) return;
  arrived_.fire();
  const std::lock_guard<std::mutex> lock(callback_mutex_);
  if (callback_ != nullptr) callback_(user_data_, count);
  else uncalled_ += count;
}

rmw_ret_t Reader::set_callback(rmw_event_callback_t callback, const void *user_data) {
  const bool listens = callback != nullptr;
  if (listens && !is_listened_to()) {
    const rmw_ret_t added = node_.context.listener->add(*this);
    if (added != RMW_RET_OK) return added;
  }
  {
    const std::lock_guard<std::mutex> lock(callback_mutex_);
    callback_ = callback;
    user_data_ = user_data;
    if (listens && uncalled_ > 0) callback_(user_data_, std::exchange(uncalled_, 0));
  }
  if (!listens && is_listened_to()) node_.context.listener->remove(*this);
  return RMW_RET_OK;
}

uint64_t Reader::poll_events() {
  // Not under the lock: who is called back may be waited for by who takes.
  std::vector<std::pair<myelin_event, std::string>> heard;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    myelin_event event = MYELIN_INIT(myelin_event);
    while (myelin_subscriber_event(subscriber_, &event) == MYELIN_OK) {
      heard.emplace_back(event, event.text == nullptr ? "" : event.text);
    }
  }
  for (const auto &[event, text] : heard) peers_.happened(event, text);
  return peers_.decide(myelin_now());
}

}  // namespace rmw_myelin
