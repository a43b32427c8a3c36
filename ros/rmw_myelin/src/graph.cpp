#include "graph.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "context.hpp"

namespace rmw_myelin {
namespace {

/// Different versions of types that cause a warning, and endpoints that do.
constexpr size_t warnings_max = 1024;

constexpr uint64_t events_key = 0;
constexpr uint64_t changes_key = 1;
constexpr uint64_t elsewhere_key = 2;

void check(myelin_code code) {
  if (code < 0) throw std::runtime_error(myelin_error_message());
}

using LibraryGraph = std::unique_ptr<myelin_graph, decltype(&myelin_graph_close)>;

LibraryGraph library_graph(myelin_node *node) {
  myelin_graph *graph = nullptr;
  check(myelin_node_graph(node, &graph));
  return LibraryGraph(graph, myelin_graph_close);
}

/// Whether it is a topic of rmw_myelin itself, of which the graph shows nothing.
bool is_hidden(const myelin_graph_endpoint &endpoint, const Attributes &attributes) {
  return endpoint.location != MYELIN_LOCATION_DDS && attributes.topic.empty() &&
         std::string(endpoint.topic).find(' ') != std::string::npos;
}

}  // namespace

Graph::Graph(rmw_context_impl_t &context, bool over_network) : context_(context) {
  try {
    check(myelin_wait_set_open(context_.node, &set_));
    check(myelin_wait_set_guard_condition(set_, events_key, &events_));
    check(myelin_wait_set_guard_condition(set_, changes_key, &changes_));
    if (over_network) {
      elsewhere_.emplace(context_.node);
      check(myelin_wait_set_add(set_, elsewhere_->subscriber(), elsewhere_key));
    }
    check(myelin_node_on_graph_change(context_.node, changes_));
  } catch (...) {
    close();
    throw;
  }
  thread_ = start_thread([this] { run(); });
}

Graph::~Graph() {
  is_ending_ = true;
  myelin_guard_condition_trigger(events_);
  thread_.join();
  close();
}

void Graph::close() {
  myelin_wait_set_close(set_);
  myelin_guard_condition_close(changes_);
  myelin_guard_condition_close(events_);
}

void Graph::run() {
  uint64_t limit_ns = MYELIN_FOREVER;
  while (!is_ending_) {
    uint64_t keys[3];
    size_t count = 0;
    const myelin_code code = myelin_wait_set_wait(set_, limit_ns, keys, 3, &count);
    if (code < 0) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "the graph is not updated any more: %s", myelin_error_message());
      return;
    }
    try {
      if (std::any_of(keys, keys + count, [](uint64_t key) { return key != events_key; })) {
        if (elsewhere_) exchange();
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Node *node : nodes_) node->graph_changed.fire();
      }
      limit_ns = context_.poll_events();
    } catch (const std::exception &error) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "the graph may miss a change: %s", error.what());
    }
  }
}

void Graph::add(Node &node) {
  std::vector<myelin_attribute> elements;
  const NamesAndValues attributes = attributes_of(node.name, context_.enclave);
  myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  options.depth = 1;
  set_attributes(options, attributes, elements);
  myelin_topic *topic = nullptr;
  check(myelin_topic_open(context_.node, nodes_topic, nullptr, &options, &topic));
  myelin_publisher_options own = MYELIN_INIT(myelin_publisher_options);
  own.this_host_only = true;
  const myelin_code code = myelin_publisher_open(topic, &own, &node.announcement);
  myelin_topic_close(topic);
  check(code);
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.push_back(&node);
}

void Graph::remove(Node &node) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    nodes_.erase(std::find(nodes_.begin(), nodes_.end(), &node));
  }
  myelin_publisher_close(node.announcement);
}

std::shared_ptr<const View> Graph::view() {
  uint64_t changes = 0;
  check(myelin_node_graph_changes(context_.node, &changes));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changes += messages_;
    if (view_ != nullptr && view_changes_ == changes) return view_;
  }
  auto view = std::make_shared<const View>(read());
  const std::lock_guard<std::mutex> lock(mutex_);
  view_ = view;
  view_changes_ = changes;
  return view;
}

View Graph::read() {
  const LibraryGraph graph = library_graph(context_.node);
  View view;
  // The node of an endpoint has a lower id, so it comes first. It may have gone before the endpoint.
  std::set<std::pair<uint64_t, NodeName>> alive;
  std::set<Gid> participants;
  myelin_graph_endpoint it = MYELIN_INIT(myelin_graph_endpoint);
  for (size_t at = 0; myelin_graph_endpoint_at(graph.get(), at, &it) == MYELIN_OK; ++at) {
    Attributes attributes = read_attributes(graph.get(), it.endpoint);
    if (attributes.unreadable != nullptr) warn_of(it.endpoint, attributes.unreadable);
    if (is_hidden(it, attributes)) continue;
    KnownEndpoint endpoint = known(it, attributes);
    if (it.location != MYELIN_LOCATION_THIS_HOST) {
      add_nodes(view, participants, endpoint);
    } else if (endpoint.topic == nodes_topic) {
      if (!endpoint.node) continue;
      alive.emplace(it.node, *endpoint.node);
      view.nodes.push_back({*endpoint.node, attributes.enclave});
      continue;
    } else if (endpoint.node && alive.count({it.node, *endpoint.node}) == 0) {
      continue;
    }
    view.endpoints.push_back(std::move(endpoint));
  }
  return view;
}

void Graph::add_nodes(View &view, std::set<Gid> &participants, KnownEndpoint &endpoint) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Gid participant = participant_of(endpoint.gid);
  const DiscoveryInfo::Nodes *nodes = elsewhere_ ? elsewhere_->nodes_of(participant) : nullptr;
  if (nodes == nullptr) return;
  endpoint.is_of_nodes = !nodes->empty();
  const bool is_new = participants.insert(participant).second;
  for (const NodeElsewhere &node : *nodes) {
    if (is_new) view.nodes.push_back({node.name, ""});
    if (!endpoint.node && node.endpoints.count(endpoint.gid) > 0) endpoint.node = node.name;
  }
}

void Graph::exchange() {
  const LibraryGraph graph = library_graph(context_.node);
  uint64_t own = 0;
  check(myelin_publisher_endpoint(elsewhere_->publisher(), &own));
  Gid participant{};
  std::vector<OwnNode> nodes;
  // The types of our topics, and their versions.
  std::map<std::string, std::pair<std::string, std::string>> types;
  std::vector<KnownEndpoint> others;
  std::set<Gid> participants;
  myelin_graph_endpoint it = MYELIN_INIT(myelin_graph_endpoint);
  for (size_t at = 0; myelin_graph_endpoint_at(graph.get(), at, &it) == MYELIN_OK; ++at) {
    const bool is_elsewhere = it.location != MYELIN_LOCATION_THIS_HOST;
    if (!is_elsewhere && !is_of_one_node(it.endpoint, own)) continue;
    const Gid gid = gid_of(it.dds_guid);
    KnownEndpoint endpoint = known(it, read_attributes(graph.get(), it.endpoint));
    if (is_elsewhere) {
      participants.insert(participant_of(gid));
      others.push_back(std::move(endpoint));
      continue;
    }
    if (gid != Gid{}) participant = participant_of(gid);
    if (!endpoint.node) continue;
    if (endpoint.topic == nodes_topic) {
      nodes.push_back({*endpoint.node, {}, {}});
      continue;
    }
    types[endpoint.topic] = {endpoint.type, endpoint.hash};
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const OwnNode &each) { return each.name == *endpoint.node; });
    if (gid == Gid{} || node == nodes.end()) continue;
    (endpoint.is_publisher ? node->publishers : node->subscribers).push_back(gid);
  }
  std::vector<std::string> warnings;
  for (const KnownEndpoint &other : others) {
    const auto type = types.find(other.topic);
    if (type == types.end()) continue;
    const auto warning = compare(type->second.first, type->second.second, other);
    if (warning) warnings.push_back(other.topic + ": " + *warning);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_ += elsewhere_->take(warnings);
    elsewhere_->keep(std::move(participants));
    if (participant != Gid{}) elsewhere_->publish(participant, nodes);
  }
  for (const std::string &text : warnings) RCUTILS_LOG_WARN_NAMED(identifier, "%s", text.c_str());
}

std::optional<KnownEndpoint> Graph::find(uint64_t endpoint) const {
  myelin_graph *graph = nullptr;
  if (myelin_node_endpoint(context_.node, endpoint, &graph) != MYELIN_OK) return std::nullopt;
  const LibraryGraph closes(graph, myelin_graph_close);
  myelin_graph_endpoint it = MYELIN_INIT(myelin_graph_endpoint);
  check(myelin_graph_endpoint_at(graph, 0, &it));
  return known(it, read_attributes(graph, endpoint));
}

std::optional<std::string> Graph::compare(const std::string &type, const std::string &hash,
                                          const KnownEndpoint &other) {
  if (type != other.type || hash.empty() || other.hash.empty() || hash == other.hash) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (compared_.size() == warnings_max) return std::nullopt;
  if (!compared_.insert(other.topic + ' ' + other.hash).second) return std::nullopt;
  return (other.node ? full_name(*other.node) : "another program") + " has another version of " + type + " (" +
         other.hash + ") than a node here (" + hash + "): messages may be misread; build both with the same version";
}

void Graph::warn_of(uint64_t endpoint, const char *attribute) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (unreadable_.size() == warnings_max) unreadable_.clear();
    if (!unreadable_.insert(endpoint).second) return;
  }
  RCUTILS_LOG_WARN_NAMED(identifier, "the graph lacks facts of an endpoint of another process; its attribute %s cannot "
                         "be read", attribute);
}

}  // namespace rmw_myelin
