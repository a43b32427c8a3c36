#include "discovery_info.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cdr.hpp"
#include "rmw_dds_common/msg/detail/participant_entities_info__rosidl_typesupport_introspection_cpp.hpp"
#include "rmw_dds_common/msg/participant_entities_info.hpp"
#include "type_support.hpp"

namespace rmw_myelin {
namespace {

using Message = rmw_dds_common::msg::ParticipantEntitiesInfo;
using GidMessage = rmw_dds_common::msg::Gid;

constexpr const char *dds_topic = "ros_discovery_info";
/// Queue of messages. Each message is the complete state of a participant.
constexpr uint32_t depth = 64;
/// Enough for some 50,000 endpoints.
constexpr size_t message_bytes_max = 16 << 20;
/// Participants whose nodes are remembered, and unreadable publishers.
constexpr size_t participants_max = 4096;

const MessageType &type() {
  static const MessageType found = message_type(*ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(
      rosidl_typesupport_introspection_cpp, rmw_dds_common, msg, ParticipantEntitiesInfo)());
  return found;
}

/// Opens the topic under a name of its own, so that only DDS matches it.
myelin_topic *open_topic(myelin_node *node, const char *name, uint32_t depth) {
  myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  options.reliability = MYELIN_KEEP_LAST;
  options.depth = options.transient_local = depth;
  options.dds_type = type().name.c_str();
  options.dds_name = dds_topic;
  options.dds_cdr = true;
  myelin_topic *topic = nullptr;
  if (myelin_topic_open(node, name, nullptr, &options, &topic) != MYELIN_OK) {
    throw std::runtime_error(myelin_error_message());
  }
  return topic;
}

Gid gid_of(const GidMessage &message) {
  Gid gid;
  std::copy_n(message.data.begin(), gid.size(), gid.begin());
  return gid;
}

GidMessage message_of(const Gid &gid) {
  GidMessage message;
  std::copy(gid.begin(), gid.end(), message.data.begin());
  return message;
}

DiscoveryInfo::Nodes nodes_in(const Message &message) {
  DiscoveryInfo::Nodes nodes;
  for (const auto &it : message.node_entities_info_seq) {
    NodeElsewhere node{{it.node_namespace, it.node_name}, {}};
    if (!is_valid(node.name)) throw std::runtime_error("a node in it has an invalid name");
    for (const auto *gids : {&it.reader_gid_seq, &it.writer_gid_seq}) {
      for (const GidMessage &gid : *gids) node.endpoints.insert(gid_of(gid));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Gid participant_of(Gid endpoint) {
  const uint8_t participant[4] = {0, 0, 1, 0xc1};
  std::copy(std::begin(participant), std::end(participant), endpoint.end() - 4);
  return endpoint;
}

DiscoveryInfo::DiscoveryInfo(myelin_node *node) {
  myelin_topic *topic = open_topic(node, "ros_discovery_info out", 1);
  myelin_code code = myelin_publisher_open(topic, nullptr, &publisher_);
  myelin_topic_close(topic);
  if (code == MYELIN_OK) {
    topic = open_topic(node, "ros_discovery_info in", depth);
    myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
    options.publishers_max = participants_max;
    code = myelin_subscriber_open(topic, &options, &subscriber_);
    myelin_topic_close(topic);
  }
  if (code == MYELIN_OK) return;
  const std::string why = myelin_error_message();
  close();
  throw std::runtime_error(why);
}

DiscoveryInfo::~DiscoveryInfo() { close(); }

void DiscoveryInfo::close() {
  myelin_publisher_close(publisher_);
  myelin_subscriber_close(subscriber_);
}

size_t DiscoveryInfo::take(std::vector<std::string> &warnings) {
  size_t messages = 0;
  myelin_sample sample = MYELIN_INIT(myelin_sample);
  while (myelin_subscriber_take(subscriber_, &sample) == MYELIN_OK) {
    ++messages;
    try {
      if (sample.bytes > message_bytes_max) throw std::runtime_error("it is too large");
      Message message;
      cdr::decode(*type().plan, static_cast<const uint8_t *>(sample.data), sample.bytes, &message);
      Nodes nodes = nodes_in(message);
      const Gid participant = gid_of(message.gid);
      if (nodes_.size() == participants_max && nodes_.count(participant) == 0) {
        throw std::runtime_error("there are too many participants");
      }
      nodes_[participant] = std::move(nodes);
    } catch (const std::exception &error) {
      if (refused_.size() == participants_max) refused_.clear();
      if (refused_.insert(sample.publisher).second) {
        warnings.push_back(std::string("the graph lacks the nodes of another process; its message about them cannot be "
                                       "read: ") + error.what());
      }
    }
    myelin_sample_release(&sample);
  }
  return messages;
}

const DiscoveryInfo::Nodes *DiscoveryInfo::nodes_of(const Gid &participant) const {
  const auto found = nodes_.find(participant);
  return found == nodes_.end() ? nullptr : &found->second;
}

void DiscoveryInfo::keep(std::set<Gid> participants) {
  for (const Gid &participant : kept_) {
    if (participants.count(participant) == 0) nodes_.erase(participant);
  }
  kept_ = std::move(participants);
}

void DiscoveryInfo::publish(const Gid &participant, const std::vector<OwnNode> &nodes) {
  Message message;
  message.gid = message_of(participant);
  for (const OwnNode &node : nodes) {
    auto &it = message.node_entities_info_seq.emplace_back();
    it.node_namespace = node.name.name_space;
    it.node_name = node.name.name;
    for (const Gid &gid : node.publishers) it.writer_gid_seq.push_back(message_of(gid));
    for (const Gid &gid : node.subscribers) it.reader_gid_seq.push_back(message_of(gid));
  }
  std::vector<uint8_t> bytes(cdr::encoded_bytes(*type().plan, &message));
  cdr::encode(*type().plan, &message, bytes.data(), bytes.size());
  if (bytes == published_) return;
  if (myelin_publisher_publish_copy(publisher_, bytes.data(), bytes.size(), nullptr) < 0) {
    RCUTILS_LOG_ERROR_NAMED(identifier, "nodes of other RMWs do not see a change of this process's nodes: %s",
                            myelin_error_message());
  }
  published_ = std::move(bytes);
}

}  // namespace rmw_myelin
