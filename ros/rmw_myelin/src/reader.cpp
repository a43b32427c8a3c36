#include "reader.hpp"

#include <algorithm>
#include <utility>
#include <stdexcept>

#include "context.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

/// Samples that a reader may hold, for loaned messages and samples taken ahead. A take beyond this limit returns an
/// error.
constexpr uint32_t held_beyond_depth = 64;
constexpr uint32_t held_max = 4096;
constexpr size_t ahead_max = held_max - held_beyond_depth;
/// Parameter events and logs have a publisher in each node.
constexpr uint32_t publishers_max = 4096;
/// Samples that one call looks at under the lock, even if more arrive meanwhile.
constexpr size_t looks_max = 4096;
/// How often replies are taken while their client is busy. In this time the server's queue, which has 1,000 places at
/// least, should not fill up.
constexpr uint64_t drain_every_ns = 50'000'000;
/// How long to go on after the last expected reply, so that not every request wakes the graph's thread.
constexpr uint64_t drain_for_ns = 1'000'000'000;

myelin_subscriber *open(myelin_node *node, const Endpoint &endpoint) {
  const myelin_topic_options options = subscriber_options(endpoint);
  myelin_topic *topic = open_topic(node, endpoint, options);
  myelin_subscriber_options own = MYELIN_INIT(myelin_subscriber_options);
  own.held_max = std::min(options.depth + held_beyond_depth, held_max);
  own.publishers_max = publishers_max;
  const uint64_t lease = nanoseconds(endpoint.qos.liveliness_lease_duration);
  own.liveliness_ns = lease == MYELIN_FOREVER ? 0 : lease;
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
      events_(node.context.graph->guard()),
      peers_(endpoint_, *node.context.graph, events_) {
  endpoint_.node = node.name;
  subscriber_ = open(node.context.node, endpoint_);
  myelin_subscriber_endpoint(subscriber_, &endpoint_.id);
  node_.context.add(*this);
  myelin_subscriber_on_event(subscriber_, node_.context.graph->guard());
}

Reader::~Reader() {
  node_.context.remove(*this);
  if (is_listened_to()) node_.context.listener->remove(*this);
  else if (WaitSet *set = set_) set->forget(*this);
  Reader::close();
}

void Reader::close() {
  taken_.clear();
  myelin_subscriber_close(subscriber_);
  subscriber_ = nullptr;
}

bool Reader::take_from_library(Sample &sample, myelin_code &code) {
  for (size_t looks = 0; looks < looks_max; ++looks) {
    code = myelin_subscriber_take(subscriber_, sample.out());
    if (code != MYELIN_OK) return false;
    sample.received_ns = wall_ns();
    if (sample->lost_before > 0) count_lost(sample->lost_before);
    if (!peers_.accepts(sample) || (filter_ && !filter_(sample))) continue;
    if (expected_.load(std::memory_order_relaxed) > 0) --expected_;
    return true;
  }
  // There may be more samples. The next wait reports them.
  sample = Sample();
  code = MYELIN_NOTHING;
  return false;
}

rmw_ret_t Reader::take(Sample &sample, bool &taken) {
  std::unique_lock<std::mutex> lock(mutex_);
  myelin_code code = MYELIN_OK;
  if (taken_.empty()) {
    taken = take_from_library(sample, code);
    return code < 0 ? fail(code, endpoint_.topic.c_str()) : RMW_RET_OK;
  }
  // Newer samples may have arrived, which push samples taken ahead out of the depth.
  if (endpoint_.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST) {
    Sample newer;
    for (size_t more = 0; more < endpoint_.qos.depth && take_from_library(newer, code); ++more) {
      keep(std::move(newer));
    }
  }
  sample = std::move(taken_.front());
  taken_.pop_front();
  taken_count_.store(taken_.size(), std::memory_order_release);
  if (taken_.empty()) arrived_.clear();
  taken = true;
  const bool has_room = is_paused_ && taken_.size() <= ahead_max / 2;
  if (has_room) is_paused_ = false;
  lock.unlock();
  if (has_room) node_.context.listener->resume(*this);
  return RMW_RET_OK;
}

size_t Reader::matched() {
  poll_events();
  return peers_.count();
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

bool Reader::is_full() const {
  return endpoint_.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL && taken_.size() >= ahead_max;
}

void Reader::keep(Sample sample) {
  if (endpoint_.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST && taken_.size() >= endpoint_.qos.depth) {
    taken_.pop_front();
    count_lost(1);
  }
  taken_.push_back(std::move(sample));
  taken_count_.store(taken_.size(), std::memory_order_release);
}

size_t Reader::take_all_ahead(bool *is_paused) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  Sample sample;
  myelin_code code;
  while (count < looks_max && !is_full() && take_from_library(sample, code)) {
    keep(std::move(sample));
    ++count;
  }
  if (count > 0 && is_listened_to()) arrived_.fire();
  if (is_paused != nullptr) *is_paused = is_paused_ = is_full();
  return count;
}

void Reader::count_lost(uint64_t samples) {
  events_.count(RMW_EVENT_MESSAGE_LOST,
                [samples](EventState &state) { state.add(static_cast<int64_t>(samples)); });
}

bool Reader::share() { return node_.context.listener->add(*this) == RMW_RET_OK; }

void Reader::join_listener(uint64_t key) {
  // Before it leaves: a wait set that attaches it meanwhile sees the flag and detaches it.
  is_listened_to_ = true;
  while (WaitSet *set = set_) set->lend(*this);
  key_ = key;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!taken_.empty()) arrived_.fire();
}

bool Reader::listen() {
  bool is_paused = false;
  const size_t count = take_all_ahead(&is_paused);
  if (count > 0 && callback_.add(count)) callback_.deliver();
  return !is_paused;
}

rmw_ret_t Reader::set_callback(rmw_event_callback_t callback, const void *user_data) {
  if (callback == nullptr) {
    callback_.set(nullptr, nullptr);
    return RMW_RET_OK;
  }
  if (!is_listened_to()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      callback_.add(taken_.size());
    }
    if (!share()) return RMW_RET_ERROR;
  }
  size_t count;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    count = taken_.size();
  }
  callback_.set(callback, user_data, count);
  return RMW_RET_OK;
}

void Reader::expect() {
  if (!peers_.is_over_network()) return;
  ++expected_;
  if (!is_draining_.exchange(true)) myelin_guard_condition_trigger(node_.context.graph->guard());
}

uint64_t Reader::drain(uint64_t now_ns) {
  if (!is_draining_ || is_listened_to()) return MYELIN_FOREVER;
  if (now_ns < drain_at_ns_) return drain_at_ns_;
  // A waiting thread does not notice samples that are taken here, so wake it.
  if (take_all_ahead() > 0) {
    if (WaitSet *set = set_) set->wake();
  }
  if (peers_.count() == 0) expected_ = 0;  // the server has gone
  if (expected_ > 0 || drain_until_ns_ == 0) drain_until_ns_ = now_ns + drain_for_ns;
  if (now_ns >= drain_until_ns_) {
    drain_until_ns_ = 0;
    is_draining_ = false;
    // Go on if `expect` has been called just now.
    if (expected_ == 0 || is_draining_.exchange(true)) return MYELIN_FOREVER;
  }
  return drain_at_ns_ = now_ns + drain_every_ns;
}

uint64_t Reader::poll_events() {
  const uint64_t next_ns = take_events();
  peers_.log();
  return next_ns;
}

uint64_t Reader::take_events() {
  const std::lock_guard<std::mutex> in_order(events_mutex_);
  std::vector<std::pair<myelin_event, std::string>> new_events;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    myelin_event event = MYELIN_INIT(myelin_event);
    while (myelin_subscriber_event(subscriber_, &event) == MYELIN_OK) {
      new_events.emplace_back(event, event.text == nullptr ? "" : event.text);
    }
  }
  for (const auto &[event, text] : new_events) peers_.happened(event, text);
  return drain(myelin_now());
}

}  // namespace rmw_myelin
