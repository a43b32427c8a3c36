// The peers of an endpoint: those that the library has matched it with, by DDS's rules for quality of service.
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

  /// Whether to take a sample: its lifespan has not passed.
  bool accepts(const Sample &sample);
  size_t count();
  /// Whether some peer was incompatible.
  bool has_refused() const { return is_refused_; }
  /// Whether the endpoint is matched with this peer.
  bool has(uint64_t peer);
  /// Peers on this host, by ascending id. `version` changes whenever a peer comes or goes.
  std::vector<uint64_t> publishers_here();
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Whether a peer is on another host.
  bool is_over_network();
  /// Logs the warnings so far. Called without a lock: a log handler may call all of rmw.
  void log();

 private:
  struct Peer {
    uint64_t lifespan_ns = MYELIN_FOREVER;
    bool is_silent = false;
    /// For a publisher: it is on this host.
    bool is_here = false;
  };

  /// Reads the record of a new peer on this host.
  void meet(uint64_t id, Peer &peer);
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
  std::atomic<bool> is_refused_{false};
  std::vector<std::string> warnings_;
};

}  // namespace rmw_myelin
