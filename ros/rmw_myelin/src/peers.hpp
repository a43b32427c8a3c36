// The other sides of an endpoint. The library matches whoever has the same topic; whether their quality of
// service fits, ROS 2 decides, and we do: of a pair that does not, nothing is taken and nothing counted.
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

/// Those that an endpoint is matched with. Any thread may use it.
class Peers {
 public:
  Peers(const Endpoint &own, Graph &graph, Events &events) : own_(own), graph_(graph), events_(events) {}

  /// What the library tells of a match; `text` says why there is none.
  void happened(const myelin_event &event, const std::string &text);
  /// Decides about those that the graph did not know. When it has to be called again, by `myelin_now`.
  uint64_t decide(uint64_t now_ns);

  /// Whether a sample is from a publisher that fits, and not too old.
  bool accepts(const Sample &sample);
  /// How many fit.
  size_t fitting();
  /// Whether this one is there.
  bool has(uint64_t peer);
  /// The publishers on this host that fit, in order; and a number that is another one when they are others.
  std::vector<uint64_t> publishers_here();
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Whether samples come from other hosts.
  bool is_over_network();
  /// Logs what has been found out meanwhile. No lock is held: a log handler may use everything.
  void log();

 private:
  enum class State { undecided, fits, refused };
  struct Peer {
    State state = State::undecided;
    /// From when on it fits though the graph does not know it.
    uint64_t decided_by_ns = 0;
    uint64_t lifespan_ns = MYELIN_FOREVER;
    bool is_silent = false;
    /// Of a publisher: it is on this host.
    bool is_here = false;
  };

  /// Whether something is known of it now.
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
