// A context is one node of the library, for any number of ROS 2 nodes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "event.hpp"
#include "graph.hpp"
#include "listener.hpp"
#include "wait.hpp"

namespace rmw_myelin {

struct Node {
  rmw_context_impl_t &context;
  NodeName name;
  /// Fires when the graph changes.
  Trigger graph_changed;
  rmw_guard_condition_t graph_condition = {};
  /// Its publisher on `ros_nodes`.
  myelin_publisher *announcement = nullptr;
};

/// Wait sets of a context. An unused wait set keeps its readers attached. Some client libraries create a wait set for
/// each wait (rclpy does); they get back the wait set that their thread used before.
class WaitSets {
 public:
  WaitSets(myelin_node *node, const std::atomic<bool> &is_shut_down)
      : node_(node), strategy_(wait_strategy()), is_shut_down_(is_shut_down) {}
  /// Returns an unused wait set, or opens one. Throws a std::runtime_error.
  WaitSet *take();
  void give_back(WaitSet *set);
  /// Ends all waits in progress.
  void wake_all();

 private:
  struct Place {
    std::unique_ptr<WaitSet> set;
    std::thread::id thread;
    bool is_in_use;
  };
  myelin_node *node_;
  const int32_t strategy_;
  const std::atomic<bool> &is_shut_down_;
  std::mutex mutex_;
  std::vector<Place> places_;
};

/// `rmw_wait_set_t::data`: a wait set that is in use until this object is destroyed.
struct LentWaitSet {
  explicit LentWaitSet(WaitSets &all) : sets(all), set(all.take()) {}
  ~LentWaitSet() { sets.give_back(set); }
  LentWaitSet(const LentWaitSet &) = delete;
  LentWaitSet &operator=(const LentWaitSet &) = delete;

  WaitSets &sets;
  WaitSet *set;
};

}  // namespace rmw_myelin

struct rmw_context_impl_s {
  /// Throws a std::runtime_error if the library's node cannot be opened.
  explicit rmw_context_impl_s(const rmw_init_options_t &options);
  ~rmw_context_impl_s();

  myelin_node *node = nullptr;
  std::string enclave;
  std::mutex mutex;
  size_t nodes = 0;
  /// If true, waits of this context return at once.
  std::atomic<bool> is_shut_down{false};
  std::unique_ptr<rmw_myelin::WaitSets> wait_sets;
  std::unique_ptr<rmw_myelin::Graph> graph;
  std::unique_ptr<rmw_myelin::Listener> listener;

  /// Lets all endpoints take their events, and calls callbacks. Returns in how many nanoseconds to call it again.
  /// Called by the graph's thread, which holds no lock.
  uint64_t poll_events();
  void add(rmw_myelin::EventSource &source);
  /// On return the graph's thread does not use `source` any more.
  void remove(rmw_myelin::EventSource &source);

 private:
  std::mutex sources_mutex_;
  std::set<rmw_myelin::EventSource *> sources_;
  /// The source that the graph's thread is polling, and this thread's id.
  rmw_myelin::EventSource *polled_ = nullptr;
  std::thread::id poller_;
  std::condition_variable is_polled_;
};
