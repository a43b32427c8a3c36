#include "peers.hpp"

#include <algorithm>
#include <utility>

#include "graph.hpp"

namespace rmw_myelin {
namespace {

/// Most warnings that wait to be logged.
constexpr size_t warnings_max = 64;

/// Returns the policy of a setting that a publisher does not offer, or RMW_QOS_POLICY_INVALID for any other.
rmw_qos_policy_kind_t policy_of(myelin_setting setting) {
  switch (setting) {
    case MYELIN_SETTING_RELIABILITY:
      return RMW_QOS_POLICY_RELIABILITY;
    case MYELIN_SETTING_DURABILITY:
      return RMW_QOS_POLICY_DURABILITY;
    case MYELIN_SETTING_DEADLINE:
      return RMW_QOS_POLICY_DEADLINE;
    // In DDS the lease belongs to the liveliness policy.
    case MYELIN_SETTING_LIVELINESS:
    case MYELIN_SETTING_LIVELINESS_LEASE:
      return RMW_QOS_POLICY_LIVELINESS;
    default:
      return RMW_QOS_POLICY_INVALID;
  }
}

}  // namespace

void Peers::happened(const myelin_event &event, const std::string &text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (event.kind) {
    case MYELIN_EVENT_MATCHED: {
      Peer &peer = peers_[event.endpoint];
      // The proxy of a publisher on another host belongs to our own node.
      peer.is_here = event.pid != 0 || !is_of_one_node(event.endpoint, own_.id);
      if (peer.is_here) meet(event.endpoint, peer);
      version_.fetch_add(1, std::memory_order_release);
      count_matched(1);
      if (!own_.is_publisher) count_alive(1, 0);
      return;
    }
    case MYELIN_EVENT_UNMATCHED: {
      const auto found = peers_.find(event.endpoint);
      if (found == peers_.end()) return;
      version_.fetch_add(1, std::memory_order_release);
      count_matched(-1);
      if (!own_.is_publisher) found->second.is_silent ? count_alive(0, -1) : count_alive(-1, 0);
      peers_.erase(found);
      return;
    }
    case MYELIN_EVENT_DEADLINE_MISSED:
      return events_.count_once(RMW_EVENT_REQUESTED_DEADLINE_MISSED);
    case MYELIN_EVENT_LIVELINESS_LOST:
    case MYELIN_EVENT_LIVELINESS_REGAINED: {
      // Automatic liveliness is that of the process: its end is the end of the match.
      if (own_.qos.liveliness != RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC) return;
      const auto found = peers_.find(event.endpoint);
      const bool is_silent = event.kind == MYELIN_EVENT_LIVELINESS_LOST;
      if (found == peers_.end() || found->second.is_silent == is_silent) return;
      found->second.is_silent = is_silent;
      is_silent ? count_alive(-1, 1) : count_alive(1, -1);
      return;
    }
    case MYELIN_EVENT_INCOMPATIBLE:
      // The library has logged the reason.
      is_refused_ = true;
      if (policy_of(event.setting) != RMW_QOS_POLICY_INVALID) return count_incompatible(policy_of(event.setting));
      return events_.count_once(own_.is_publisher ? publisher_incompatible_type
                                                  : subscription_incompatible_type);
    case MYELIN_EVENT_REFUSED:
      // The library has logged the reason and tries again. ROS 2 has no event for this.
      return;
    case MYELIN_EVENT_BUFFER_TOO_SMALL:
    case MYELIN_EVENT_CORRUPT:
      return warn(text.empty() ? "a peer wrote invalid data and was disconnected" : text);
    default:
      return;
  }
}

void Peers::meet(uint64_t id, Peer &peer) {
  const std::optional<KnownEndpoint> known = graph_.find(id);
  if (!known) return;
  if (!own_.is_publisher) peer.lifespan_ns = nanoseconds(known->qos.lifespan);
  if (auto warning = graph_.compare(own_.type.name, own_.type.hash, *known)) warn(std::move(*warning));
}

bool Peers::accepts(const Sample &sample) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The publisher is missing in the map if its match has ended, or if the event of its match is still to come.
  const auto found = peers_.find(sample->publisher);
  const uint64_t lifespan_ns = found == peers_.end() ? MYELIN_FOREVER : found->second.lifespan_ns;
  if (lifespan_ns == MYELIN_FOREVER || sample->published_ns == 0) return true;
  return myelin_now() - sample->published_ns <= lifespan_ns;
}

size_t Peers::count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_.size();
}

bool Peers::has(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_.count(id) > 0;
}

std::vector<uint64_t> Peers::publishers_here() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> found;
  for (const auto &[id, peer] : peers_) {
    if (peer.is_here) found.push_back(id);
  }
  return found;
}

bool Peers::is_over_network() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(peers_.begin(), peers_.end(), [](const auto &each) { return !each.second.is_here; });
}

void Peers::log() {
  std::vector<std::string> warnings;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (warnings_.empty()) return;
    warnings.swap(warnings_);
  }
  for (const std::string &text : warnings) {
    RCUTILS_LOG_WARN_NAMED(identifier, "%s: %s", own_.topic.c_str(), text.c_str());
  }
}

void Peers::warn(std::string text) {
  if (warnings_.size() < warnings_max) warnings_.push_back(std::move(text));
}

void Peers::count_matched(int64_t change) {
  events_.count(own_.is_publisher ? publication_matched : subscription_matched,
                [change](EventState &state) {
                  if (change > 0) state.add(1);
                  state.current += change;
                  state.current_change += change;
                });
}

void Peers::count_alive(int64_t living, int64_t silent) {
  events_.count(RMW_EVENT_LIVELINESS_CHANGED, [living, silent](EventState &state) {
    state.current += living;
    state.current_change += living;
    state.other += silent;
    state.other_change += silent;
  });
}

void Peers::count_incompatible(rmw_qos_policy_kind_t policy) {
  events_.count(own_.is_publisher ? RMW_EVENT_OFFERED_QOS_INCOMPATIBLE
                                  : RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE,
                [policy](EventState &state) {
                  state.add(1);
                  state.policy = policy;
                });
}

}  // namespace rmw_myelin
