#include "graph.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "context.hpp"
#include "graph_messages.hpp"
#include "qos.hpp"

namespace rmw_myelin {
namespace {

constexpr const char *contexts_topic = "ros_graph";
constexpr const char *dds_topic = "ros_discovery_info";
constexpr const char *dds_type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
/// Most contexts of a domain: as many as a subscriber can have publishers.
constexpr uint32_t contexts_max = 4096;
/// Queue of messages from DDS. Each message is the complete state of a participant.
constexpr uint32_t dds_depth = 64;

/// Unreadable publishers that are remembered, so that each causes one warning.
constexpr size_t refused_max = 1024;
/// Different versions of types that cause a warning.
constexpr size_t told_types_max = 1024;

constexpr uint64_t changed_key = 0;
constexpr uint64_t contexts_key = 1;
constexpr uint64_t dds_key = 2;

void check(myelin_code code) {
  if (code != MYELIN_OK) throw std::runtime_error(myelin_error_message());
}

/// Opens a topic that keeps the newest samples of each publisher, also for subscribers that come later.
myelin_topic *open_topic(myelin_node *node, const std::string &name, myelin_topic_options options,
                         uint32_t depth) {
  options.reliability = MYELIN_KEEP_LAST;
  options.depth = options.history = depth;
  myelin_topic *topic = nullptr;
  check(myelin_topic_open(node, name.c_str(), nullptr, &options, &topic));
  return topic;
}

void open(myelin_topic *topic, myelin_publisher *&publisher) {
  const myelin_code code = myelin_publisher_open(topic, nullptr, &publisher);
  myelin_topic_close(topic);
  check(code);
}

void open(myelin_topic *topic, myelin_subscriber *&subscriber) {
  myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.publishers_max = contexts_max;
  const myelin_code code = myelin_subscriber_open(topic, &options, &subscriber);
  myelin_topic_close(topic);
  check(code);
}

Gid gid_of_bytes(const uint8_t *bytes) {
  Gid gid;
  std::memcpy(gid.data(), bytes, gid.size());
  return gid;
}

/// Returns the participant of an endpoint. Both are GUIDs in DDS.
Gid participant_of(Gid endpoint) {
  const uint8_t participant[4] = {0, 0, 1, 0xc1};
  std::copy(std::begin(participant), std::end(participant), endpoint.end() - 4);
  return endpoint;
}

/// Returns the value of a key in `key=value;key=value;`.
std::string value_of(const std::string &text, const std::string &key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    if (text.compare(at, key.size() + 1, key + "=") == 0) {
      return text.substr(at + key.size() + 1, end - at - key.size() - 1);
    }
    at = end + 1;
  }
  return "";
}

rmw_time_t time_of(uint64_t ns) {
  if (ns == MYELIN_FOREVER) return {9223372036, 854775807};
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

/// Converts an endpoint of another RMW. DDS does not announce its history and depth.
KnownEndpoint known(const myelin_graph_endpoint &remote) {
  const auto *text = reinterpret_cast<const char *>(remote.dds_user_data);
  rmw_qos_profile_t qos{};
  qos.history = RMW_QOS_POLICY_HISTORY_UNKNOWN;
  qos.reliability = remote.is_reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE
                                       : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  qos.durability = remote.history > 0 ? RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL
                                        : RMW_QOS_POLICY_DURABILITY_VOLATILE;
  qos.liveliness = remote.is_alive_by_topic ? RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC
                                            : RMW_QOS_POLICY_LIVELINESS_AUTOMATIC;
  qos.deadline = time_of(remote.deadline_ns);
  qos.lifespan = time_of(remote.lifespan_ns);
  qos.liveliness_lease_duration = time_of(remote.liveliness_ns);
  return {remote.is_publisher, remote.topic, remote.type_name,
          value_of(std::string(text, remote.dds_user_data_bytes), "typehash"), qos};
}

bool is_same(const std::map<Gid, Participant> &left, const std::map<Gid, Participant> &right) {
  const auto is_same_endpoint = [](const auto &one, const auto &other) {
    return one.first == other.first;
  };
  const auto is_same_node = [](const KnownNode &one, const KnownNode &other) {
    return one.name == other.name && one.name_space == other.name_space &&
           one.endpoints == other.endpoints;
  };
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [&](const auto &one, const auto &other) {
        const auto &[a, b] = std::tie(one.second, other.second);
        return one.first == other.first &&
               std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                          is_same_node) &&
               std::equal(a.endpoints.begin(), a.endpoints.end(), b.endpoints.begin(),
                          b.endpoints.end(), is_same_endpoint);
      });
}

}  // namespace

Graph::Graph(rmw_context_impl_t &context, bool over_network)
    : context_(context), over_network_(over_network) {
  try {
    open_all();
  } catch (...) {
    close_all();
    throw;
  }
  thread_ = start_thread([this] { run(); });
}

Graph::~Graph() {
  is_ending_ = true;
  myelin_guard_trigger(guard_);
  thread_.join();
  close_all();
}

void Graph::open_all() {
  const myelin_topic_options none = MYELIN_INIT(myelin_topic_options);
  open(open_topic(context_.node, contexts_topic, none, 1), publisher_);
  open(open_topic(context_.node, contexts_topic, none, 1), subscriber_);
  uint64_t id = 0;
  check(myelin_publisher_endpoint(publisher_, &id));
  own_gid_ = gid_of(id);
  own().enclave = context_.enclave;
  check(myelin_wait_set_open(context_.node, &set_));
  check(myelin_wait_set_guard(set_, changed_key, &guard_));
  check(myelin_wait_set_add(set_, subscriber_, contexts_key));
  if (over_network_) {
    // Two topics with names of their own, so that only DDS matches them: shared memory has `ros_graph`.
    const std::string name = std::string(dds_topic) + " " + std::to_string(id);
    myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
    options.dds_type = dds_type;
    options.dds_name = dds_topic;
    options.dds_cdr = true;
    open(open_topic(context_.node, name + " out", options, 1), dds_publisher_);
    open(open_topic(context_.node, name + " in", options, dds_depth), dds_subscriber_);
    check(myelin_wait_set_add(set_, dds_subscriber_, dds_key));
  }
  check(myelin_node_on_graph_change(context_.node, guard_));
}

void Graph::close_all() {
  myelin_publisher_close(publisher_);
  myelin_publisher_close(dds_publisher_);
  myelin_wait_set_close(set_);
  myelin_subscriber_close(subscriber_);
  myelin_subscriber_close(dds_subscriber_);
  myelin_guard_close(guard_);
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
      if (code == MYELIN_OK) {
        if (hear()) {
          const std::lock_guard<std::mutex> lock(mutex_);
          tell_nodes();
        }
        announce();
        if (over_network_) announce_to_dds();
        log_warnings();
      }
      limit_ns = context_.poll_events();
    } catch (const std::exception &error) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "the graph may miss a change: %s", error.what());
    }
  }
}

bool Graph::hear() {
  bool is_different = hear_contexts();
  if (over_network_) {
    hear_dds();
    is_different |= discover();
  }
  return is_different;
}

bool Graph::hear_contexts() {
  // Events first. The last messages of a publisher that has gone are taken in before it is forgotten.
  std::vector<uint64_t> gone;
  myelin_event event = MYELIN_INIT(myelin_event);
  while (myelin_subscriber_event(subscriber_, &event) == MYELIN_OK) {
    if (event.kind == MYELIN_EVENT_UNMATCHED) gone.push_back(event.endpoint);
  }
  bool is_different = false;
  myelin_sample sample = MYELIN_INIT(myelin_sample);
  while (myelin_subscriber_take(subscriber_, &sample) == MYELIN_OK) {
    try {
      auto [gid, context] = decode_context(static_cast<const uint8_t *>(sample.data), sample.bytes);
      if (gid != own_gid_) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto &[own_gid, endpoint] : own().endpoints) compare(endpoint, context);
        contexts_[sample.publisher] = gid;
        participants_[gid] = std::move(context);
        is_different = true;
      }
    } catch (const std::exception &error) {
      is_different |= refuse(sample.publisher, error.what());
    }
    myelin_sample_release(&sample);
  }
  for (const uint64_t publisher : gone) {
    is_different |= forget(publisher);
    refused_.erase(publisher);
  }
  return is_different;
}

bool Graph::forget(uint64_t publisher) {
  const auto found = contexts_.find(publisher);
  if (found == contexts_.end()) return false;
  const Gid gid = found->second;
  contexts_.erase(found);
  // The same context may be matched as another publisher by now, over another interface.
  if (std::any_of(contexts_.begin(), contexts_.end(), [&](const auto &it) { return it.second == gid; })) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  participants_.erase(gid);
  return true;
}

bool Graph::refuse(uint64_t publisher, const char *why) {
  if (refused_.size() == refused_max) refused_.clear();
  if (refused_.insert(publisher).second) {
    RCUTILS_LOG_WARN_NAMED(identifier, "the graph lacks the nodes of another process; its message about them "
                                       "cannot be read: %s", why);
  }
  return forget(publisher);
}

void Graph::hear_dds() {
  myelin_sample sample = MYELIN_INIT(myelin_sample);
  while (myelin_subscriber_take(dds_subscriber_, &sample) == MYELIN_OK) {
    try {
      auto [gid, nodes] = decode_dds_nodes(static_cast<const uint8_t *>(sample.data), sample.bytes);
      dds_nodes_[gid] = std::move(nodes);
    } catch (const std::exception &error) {
      refuse(sample.publisher, error.what());
    }
    myelin_sample_release(&sample);
  }
}

bool Graph::discover() {
  myelin_graph *graph = nullptr;
  if (myelin_node_graph(context_.node, &graph) != MYELIN_OK) return false;
  std::map<Gid, Participant> found;
  dds_gids_.clear();
  myelin_graph_endpoint it = MYELIN_INIT(myelin_graph_endpoint);
  for (size_t at = 0; myelin_graph_endpoint_at(graph, at, &it) == MYELIN_OK; ++at) {
    const Gid gid = gid_of_bytes(it.dds_guid);
    if (it.location == MYELIN_LOCATION_THIS_HOST && gid != Gid{}) dds_gids_[gid_of(it.endpoint)] = gid;
    // Endpoints of Myelin come by `ros_graph`.
    if (it.location != MYELIN_LOCATION_DDS) continue;
    KnownEndpoint endpoint = known(it);
    const bool is_readable = is_utf8(endpoint.topic) && is_utf8(endpoint.type);
    if (is_readable) found[participant_of(gid)].endpoints.emplace(gid, std::move(endpoint));
  }
  myelin_graph_close(graph);
  for (const auto &[gid, participant] : dds_participants_) {
    if (found.count(gid) == 0) dds_nodes_.erase(gid);
  }
  for (auto &[gid, participant] : found) {
    const auto nodes = dds_nodes_.find(gid);
    if (nodes != dds_nodes_.end()) participant.nodes = nodes->second;
  }
  if (is_same(found, dds_participants_)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[gid, participant] : found) {
    for (const auto &[own_gid, endpoint] : own().endpoints) compare(endpoint, participant);
  }
  for (const auto &[gid, participant] : dds_participants_) participants_.erase(gid);
  participants_.insert(found.begin(), found.end());
  dds_participants_ = std::move(found);
  return true;
}

void Graph::announce() {
  std::vector<uint8_t> message;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(is_untold_, false)) return;
    message = encode_context(own_gid_, own());
  }
  if (myelin_publisher_publish_copy(publisher_, message.data(), message.size(), nullptr) < 0) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "other nodes do not see a change of this process's nodes: %s",
                            myelin_error_message());
  }
}

void Graph::announce_to_dds() {
  if (dds_gids_.empty()) return;
  std::vector<DdsNode> nodes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const KnownNode &node : own().nodes) {
      DdsNode &dds_node = nodes.emplace_back(DdsNode{node.name_space, node.name, {}, {}});
      for (const Gid &endpoint : node.endpoints) {
        const auto gid = dds_gids_.find(endpoint);
        if (gid == dds_gids_.end()) continue;
        (own().endpoints.at(endpoint).is_publisher ? dds_node.writers : dds_node.readers)
            .push_back(gid->second);
      }
    }
  }
  std::vector<uint8_t> message = encode_dds_nodes(participant_of(dds_gids_.begin()->second), nodes);
  if (message == told_dds_) return;
  if (myelin_publisher_publish_copy(dds_publisher_, message.data(), message.size(), nullptr) < 0) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "nodes of other RMWs do not see a change of this process's nodes: %s",
                            myelin_error_message());
  }
  told_dds_ = std::move(message);
}

void Graph::compare(const KnownEndpoint &own, const Participant &other) {
  for (const auto &[gid, theirs] : other.endpoints) {
    if (theirs.is_publisher == own.is_publisher || theirs.topic != own.topic) continue;
    // Endpoints of different types do not match, and the library reports that.
    const bool is_other_version = theirs.type == own.type && !own.hash.empty() &&
                                  !theirs.hash.empty() && own.hash != theirs.hash;
    if (!is_other_version || told_types_.size() == told_types_max) continue;
    if (!told_types_.insert(own.topic + ' ' + theirs.hash).second) continue;
    const KnownNode *node = other.node_of(gid);
    warnings_.push_back("topic " + own.topic + ": " + (node == nullptr ? "another program" : node->name) +
                        " has another version of " + own.type + " (" + theirs.hash + ") than a node here (" +
                        own.hash + "): messages may be misread; build both with the same version");
  }
}

void Graph::log_warnings() {
  std::vector<std::string> warnings;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    warnings.swap(warnings_);
  }
  for (const std::string &text : warnings) RCUTILS_LOG_WARN_NAMED(identifier, "%s", text.c_str());
}

const KnownNode *Participant::node_of(const Gid &endpoint) const {
  for (const KnownNode &node : nodes) {
    if (std::find(node.endpoints.begin(), node.endpoints.end(), endpoint) != node.endpoints.end()) {
      return &node;
    }
  }
  return nullptr;
}

void Graph::changed() {
  is_untold_ = true;
  tell_nodes();
  myelin_guard_trigger(guard_);
}

void Graph::tell_nodes() {
  for (Node *node : nodes_) node->graph_changed.fire();
}

void Graph::add_node(Node &node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.push_back(&node);
  own().nodes.push_back({node.name_space, node.name, {}});
  changed();
}

void Graph::remove_node(Node &node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const KnownNode &known = known_node(node);
  for (const Gid &endpoint : known.endpoints) own().endpoints.erase(endpoint);
  own().nodes.erase(own().nodes.begin() + (&known - own().nodes.data()));
  nodes_.erase(std::find(nodes_.begin(), nodes_.end(), &node));
  changed();
}

void Graph::add(Node &node, const Endpoint &endpoint) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Gid gid = gid_of(endpoint.id);
  own().endpoints[gid] = {endpoint.is_publisher, endpoint.topic, endpoint.type.name,
                          endpoint.type.hash, endpoint.qos};
  known_node(node).endpoints.push_back(gid);
  for (const auto &[context, participant] : participants_) compare(own().endpoints[gid], participant);
  changed();
}

void Graph::remove(Node &node, const Endpoint &endpoint) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Gid gid = gid_of(endpoint.id);
  own().endpoints.erase(gid);
  std::vector<Gid> &its = known_node(node).endpoints;
  its.erase(std::remove(its.begin(), its.end(), gid), its.end());
  changed();
}

KnownNode &Graph::known_node(const Node &node) {
  const auto found = std::find(nodes_.begin(), nodes_.end(), &node);
  return own().nodes[static_cast<size_t>(found - nodes_.begin())];
}

std::optional<rmw_qos_profile_t> Graph::qos_of(uint64_t endpoint) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Gid gid = gid_of(endpoint);
  for (const auto &[context, participant] : participants_) {
    const auto found = participant.endpoints.find(gid);
    if (found != participant.endpoints.end()) return found->second.qos;
  }
  return std::nullopt;
}

Gid gid_of(uint64_t endpoint) {
  Gid gid{};
  std::memcpy(gid.data(), &endpoint, sizeof endpoint);
  return gid;
}

rmw_gid_t ros_gid(const Gid &gid) {
  rmw_gid_t made{};
  made.implementation_identifier = identifier;
  std::memcpy(made.data, gid.data(), gid.size());
  return made;
}

}  // namespace rmw_myelin
