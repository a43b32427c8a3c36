#include "records.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rmw/validate_namespace.h"
#include "rmw/validate_node_name.h"

namespace rmw_myelin {
namespace {

constexpr const char *node_attribute = "ros.node";
constexpr const char *hash_attribute = "ros.type_hash";
constexpr const char *depth_attribute = "ros.depth";
constexpr const char *topic_attribute = "ros.topic";
constexpr const char *enclave_attribute = "ros.enclave";

constexpr size_t library_name_max = 255;

/// Whether it has no character that a name of ROS 2 cannot have: programs in Python read UTF-8 only.
bool is_printable(const std::string &text) {
  return std::all_of(text.begin(), text.end(), [](char it) { return it >= ' ' && it <= '~'; });
}

std::optional<size_t> depth_of(const std::string &text) {
  char *end = nullptr;
  const unsigned long long depth = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] < '0' || text[0] > '9' || *end != 0) return std::nullopt;
  return static_cast<size_t>(depth);
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

/// Returns the type's name in DDS. The library names its kind of encoding in front of it.
std::string dds_type(const std::string &type) {
  const std::string prefix = "CDR ";
  return type.compare(0, prefix.size(), prefix) == 0 ? type.substr(prefix.size()) : type;
}

rmw_time_t time_of(uint64_t ns) {
  if (ns == MYELIN_FOREVER) return {9223372036, 854775807};
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

rmw_qos_profile_t qos_of(const myelin_graph_endpoint &endpoint, const Attributes &attributes) {
  rmw_qos_profile_t qos{};
  const size_t depth = attributes.depth.value_or(endpoint.depth);
  qos.history = depth == 0 ? RMW_QOS_POLICY_HISTORY_KEEP_ALL : RMW_QOS_POLICY_HISTORY_KEEP_LAST;
  if (endpoint.location == MYELIN_LOCATION_DDS) qos.history = RMW_QOS_POLICY_HISTORY_UNKNOWN;
  qos.depth = depth;
  qos.reliability = endpoint.is_reliable || endpoint.resends ? RMW_QOS_POLICY_RELIABILITY_RELIABLE
                                                             : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  qos.durability =
      endpoint.transient_local > 0 ? RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL : RMW_QOS_POLICY_DURABILITY_VOLATILE;
  qos.liveliness = endpoint.is_alive_by_topic ? RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC
                                              : RMW_QOS_POLICY_LIVELINESS_AUTOMATIC;
  qos.deadline = time_of(endpoint.deadline_ns);
  qos.lifespan = time_of(endpoint.lifespan_ns);
  qos.liveliness_lease_duration = time_of(endpoint.liveliness_ns);
  return qos;
}

}  // namespace

std::string full_name(const NodeName &node) {
  return (node.name_space == "/" ? "" : node.name_space) + '/' + node.name;
}

std::optional<NodeName> node_of(const std::string &full_name) {
  const size_t slash = full_name.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  NodeName node{slash == 0 ? "/" : full_name.substr(0, slash), full_name.substr(slash + 1)};
  if (!is_valid(node)) return std::nullopt;
  return node;
}

bool is_valid(const NodeName &node) {
  int of_name = RMW_NODE_NAME_VALID;
  int of_space = RMW_NAMESPACE_VALID;
  return rmw_validate_node_name(node.name.c_str(), &of_name, nullptr) == RMW_RET_OK &&
         rmw_validate_namespace(node.name_space.c_str(), &of_space, nullptr) == RMW_RET_OK &&
         of_name == RMW_NODE_NAME_VALID && of_space == RMW_NAMESPACE_VALID &&
         node.name.find('\0') == std::string::npos && node.name_space.find('\0') == std::string::npos;
}

/// A space or a question mark, which no ROS 2 name contains, makes it differ from the name in DDS.
std::string library_name(const Endpoint &endpoint) {
  std::string own;
  if (endpoint.client != 0) {
    char text[2 + 16];
    std::snprintf(text, sizeof text, " %016" PRIx64, endpoint.client);
    own = text;
  }
  // ROS 2 allows service names whose request topics exceed the library's limit.
  if (endpoint.topic.size() + own.size() <= library_name_max) return endpoint.topic + own;
  return endpoint.topic.substr(0, library_name_max - 1 - own.size()) + '?' + own;
}

NamesAndValues attributes_of(const Endpoint &endpoint) {
  NamesAndValues attributes;
  if (endpoint.is_way_back()) return attributes;
  const bool keeps_all = endpoint.qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  attributes.emplace_back(node_attribute, full_name(endpoint.node));
  attributes.emplace_back(depth_attribute, std::to_string(keeps_all ? 0 : endpoint.qos.depth));
  if (!endpoint.type.hash.empty()) attributes.emplace_back(hash_attribute, endpoint.type.hash);
  if (library_name(endpoint) != endpoint.topic) attributes.emplace_back(topic_attribute, endpoint.topic);
  return attributes;
}

NamesAndValues attributes_of(const NodeName &node, const std::string &enclave) {
  return {{node_attribute, full_name(node)}, {enclave_attribute, enclave}};
}

void set_attributes(myelin_topic_options &options, const NamesAndValues &attributes,
                    std::vector<myelin_attribute> &elements) {
  for (const auto &[name, value] : attributes) elements.push_back({name, value.data(), value.size()});
  options.attributes = elements.data();
  options.attribute_count = elements.size();
}

Attributes read_attributes(myelin_graph *graph, uint64_t endpoint) {
  Attributes read;
  myelin_attribute it;
  for (size_t at = 0; myelin_graph_attribute_at(graph, endpoint, at, &it) == MYELIN_OK; ++at) {
    const std::string name = it.name;
    if (name.compare(0, 4, "ros.") != 0) continue;
    std::string value(static_cast<const char *>(it.value), it.bytes);
    bool is_readable = is_printable(value);
    if (name == node_attribute) is_readable = (read.node = node_of(value)).has_value();
    if (name == depth_attribute) is_readable = (read.depth = depth_of(value)).has_value();
    if (name == hash_attribute) read.hash = value;
    if (name == topic_attribute) read.topic = value;
    if (name == enclave_attribute) read.enclave = value;
    if (is_readable) continue;
    Attributes none;
    for (const char *known : {node_attribute, depth_attribute, hash_attribute, topic_attribute, enclave_attribute}) {
      if (name == known) none.unreadable = known;
    }
    if (none.unreadable != nullptr) return none;
  }
  return read;
}

KnownEndpoint known(const myelin_graph_endpoint &endpoint, const Attributes &attributes) {
  const bool is_here = endpoint.location == MYELIN_LOCATION_THIS_HOST;
  const std::string user_data(reinterpret_cast<const char *>(endpoint.dds_user_data), endpoint.dds_user_data_bytes);
  return {is_here ? gid_of(endpoint.endpoint) : gid_of(endpoint.dds_guid), endpoint.is_publisher,
          attributes.topic.empty() ? endpoint.topic : attributes.topic, dds_type(endpoint.type_name),
          attributes.hash.empty() ? value_of(user_data, "typehash") : attributes.hash, qos_of(endpoint, attributes),
          attributes.node};
}

Gid gid_of(uint64_t endpoint) {
  Gid gid{};
  std::memcpy(gid.data(), &endpoint, sizeof endpoint);
  return gid;
}

Gid gid_of(const uint8_t (&guid)[16]) {
  Gid gid;
  std::copy(std::begin(guid), std::end(guid), gid.begin());
  return gid;
}

rmw_gid_t ros_gid(const Gid &gid) {
  rmw_gid_t made{};
  made.implementation_identifier = identifier;
  std::memcpy(made.data, gid.data(), gid.size());
  return made;
}

}  // namespace rmw_myelin
