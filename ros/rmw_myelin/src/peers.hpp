// The peers of an endpoint. The library matches all endpoints of a topic; ROS 2's rules for quality of service are
// applied here. From an incompatible peer no sample is taken, and its match is not counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "endpoint.hpp"
#include "event.hpp"
#include "sample.hpp"

namespace rmw_myelin {

class Graph;

/// The peers that an endpoint is matched with. Any thread may use it.
class Peers {
 public:
  Peers(const Endpoint &own, Graph &graph, Events &events) : own_(own), graph_(graph), events_(events) {}

  /// Processes an event of the library. `text` is the library's reason, or empty.
  void happened(const myelin_event &event, const std::string &text);
  /// Checks the peers that the graph did not know so far. Returns the time (of `myelin_now`) by which to call it again.
  uint64_t decide(uint64_t now_ns);

  /// Whether to take a sample: its publisher is compatible, and its lifespan has not passed.
  bool accepts(const Sample &sample);
  /// Number of compatible peers.
  size_t fitting();
  /// Whether the endpoint is matched with this peer, compatible or not.
  bool has(uint64_t peer);
  /// Compatible publishers on this host, by ascending id. `version` changes whenever a compatible peer comes or goes.
  std::vector<uint64_t> publishers_here();
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Whether a peer is on another host.
  bool is_over_network();
  /// Logs the warnings so far. Called without a lock: a log handler may call all of rmw.
  void log();

 private:
  enum class State { undecided, fits, refused };
  struct Peer {
    State state = State::undecided;
    /// The time at which the peer is accepted even if the graph does not know it.
    uint64_t decided_by_ns = 0;
    uint64_t lifespan_ns = MYELIN_FOREVER;
    bool is_silent = false;
    /// For a publisher: it is on this host.
    bool is_here = false;
  };

  /// Checks the peer if the graph knows it. Returns whether its state is decided now.
  bool decide_about(uint64_t id, Peer &peer);
  void enter(Peer &peer);
  void leave(const Peer &peer);
  void count_matched(int64_t change);
  void count_alive(int64_t living, int64_t silent);
  void count_incompatible(rmw_qos_policy_kind_t policy);
  void warn(std::string text);

  const Endpoint &own_;
  Graph &graph_;
  Events &events_;
  std::mutex mutex_;
  std::map<uint64_t, Peer> peers_;
  std::atomic<uint64_t> version_{0};
  std::vector<std::string> warnings_;
};

}  // namespace rmw_myelin
