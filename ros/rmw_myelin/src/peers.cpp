#include "peers.hpp"

#include <algorithm>
#include <utility>

#include "graph.hpp"
#include "qos.hpp"
#include "rmw/qos_string_conversions.h"

namespace rmw_myelin {
namespace {

/// How long the graph may take to learn of a peer. Programs that use Myelin directly are not ROS 2 nodes and never
/// appear in the graph; after this time they are accepted.
constexpr uint64_t undecided_ns = 100'000'000;
/// Most warnings that wait to be logged.
constexpr size_t warnings_max = 64;

}  // namespace

void Peers::happened(const myelin_event &event, const std::string &text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (event.kind) {
    case MYELIN_EVENT_MATCHED: {
      Peer &peer = peers_[event.endpoint];
      peer.decided_by_ns = myelin_now() + undecided_ns;
      // The proxy of a publisher on another host belongs to our own node.
      peer.is_here = event.pid != 0 || !is_of_one_node(event.endpoint, own_.id);
      // For peers on other hosts DDS has decided already, and for a reply topic the server has.
      if (event.pid == 0 || own_.client != 0) peer.decided_by_ns = 0;
      decide_about(event.endpoint, peer);
      return;
    }
    case MYELIN_EVENT_UNMATCHED: {
      const auto found = peers_.find(event.endpoint);
      if (found == peers_.end()) return;
      leave(found->second);
      peers_.erase(found);
      return;
    }
    case MYELIN_EVENT_DEADLINE_MISSED:
      return events_.count_once(RMW_EVENT_REQUESTED_DEADLINE_MISSED);
    case MYELIN_EVENT_LIVELINESS_LOST:
    case MYELIN_EVENT_LIVELINESS_REGAINED: {
      const auto found = peers_.find(event.endpoint);
      const bool is_silent = event.kind == MYELIN_EVENT_LIVELINESS_LOST;
      if (found == peers_.end() || found->second.is_silent == is_silent) return;
      found->second.is_silent = is_silent;
      if (found->second.state == State::fits) is_silent ? count_alive(-1, 1) : count_alive(1, -1);
      return;
    }
    case MYELIN_EVENT_INCOMPATIBLE:
      // The library has logged the reason.
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

uint64_t Peers::decide(uint64_t now_ns) {
  uint64_t next_ns = MYELIN_FOREVER;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto &[id, peer] : peers_) {
    if (peer.state != State::undecided) continue;
    if (!decide_about(id, peer)) next_ns = std::min(next_ns, std::max(peer.decided_by_ns, now_ns));
  }
  return next_ns;
}

bool Peers::decide_about(uint64_t id, Peer &peer) {
  const auto qos = own_.client != 0 ? std::nullopt : graph_.qos_of(id);
  if (!qos) {
    if (myelin_now() < peer.decided_by_ns) return false;
    enter(peer);
    return true;
  }
  const rmw_qos_profile_t &offered = own_.is_publisher ? own_.qos : *qos;
  const rmw_qos_profile_t &asked = own_.is_publisher ? *qos : own_.qos;
  peer.lifespan_ns = nanoseconds(offered.lifespan);
  const rmw_qos_policy_kind_t policy = incompatible_policy(offered, asked);
  if (policy == RMW_QOS_POLICY_INVALID) {
    enter(peer);
  } else {
    peer.state = State::refused;
    count_incompatible(policy);
  }
  return true;
}

void Peers::enter(Peer &peer) {
  peer.state = State::fits;
  version_.fetch_add(1, std::memory_order_release);
  count_matched(1);
  if (!own_.is_publisher) peer.is_silent ? count_alive(0, 1) : count_alive(1, 0);
}

void Peers::leave(const Peer &peer) {
  if (peer.state != State::fits) return;
  version_.fetch_add(1, std::memory_order_release);
  count_matched(-1);
  if (!own_.is_publisher) peer.is_silent ? count_alive(0, -1) : count_alive(-1, 0);
}

bool Peers::accepts(const Sample &sample) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(sample->publisher);
  // The publisher is missing in the map if its match has ended, or if the event of its match is still to come.
  Peer unknown;
  Peer &peer = found == peers_.end() ? unknown : found->second;
  if (found != peers_.end() && peer.state == State::undecided) decide_about(found->first, peer);
  if (peer.state == State::refused) return false;
  if (peer.lifespan_ns == MYELIN_FOREVER || sample->published_ns == 0) return true;
  return myelin_now() - sample->published_ns <= peer.lifespan_ns;
}

size_t Peers::fitting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(), [](const auto &each) {
    return each.second.state == State::fits;
  }));
}

bool Peers::has(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_.count(id) > 0;
}

std::vector<uint64_t> Peers::publishers_here() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> found;
  for (const auto &[id, peer] : peers_) {
    if (peer.is_here && peer.state == State::fits) found.push_back(id);
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
  warn(std::string(own_.is_publisher ? "a subscription requests more than this publisher offers ("
                                     : "this subscription requests more than a publisher offers (") +
       rmw_qos_policy_kind_to_str(policy) + "); they exchange nothing");
  events_.count(own_.is_publisher ? RMW_EVENT_OFFERED_QOS_INCOMPATIBLE
                                  : RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE,
                [policy](EventState &state) {
                  state.add(1);
                  state.policy = policy;
                });
}

}  // namespace rmw_myelin
