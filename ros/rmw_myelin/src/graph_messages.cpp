#include "graph_messages.hpp"

#include <cstring>
#include <stdexcept>

#include "rmw/validate_node_name.h"

namespace rmw_myelin {
namespace {

/// Writes plain CDR in the byte order of the host.
class Encoder {
 public:
  Encoder() : bytes_{0, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, 0, 0} {}

  template <typename Number>
  void number(Number value) {
    bytes_.resize(bytes_.size() + padding(bytes_.size(), sizeof value));
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  void count(size_t value) { number(static_cast<uint32_t>(value)); }
  void text(const std::string &value) {
    count(value.size() + 1);
    bytes_.insert(bytes_.end(), value.c_str(), value.c_str() + value.size() + 1);
  }
  /// Writes a gid of `bytes`, filled up with zeros.
  void gid(const Gid &value, size_t bytes = sizeof(Gid)) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.resize(bytes_.size() + bytes - value.size());
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

  static size_t padding(size_t at, size_t align) { return (align - (at - 4) % align) % align; }

 private:
  std::vector<uint8_t> bytes_;
};

/// Reads what `Encoder` writes. Throws a std::runtime_error if the message is too short.
class Decoder {
 public:
  Decoder(const uint8_t *data, size_t bytes) : data_(data), bytes_(bytes) {
    if (bytes > graph_message_bytes_max) throw std::runtime_error("it is too large");
    if (bytes < 4 || data[0] != 0 || data[1] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)) {
      throw std::runtime_error("it has another encoding");
    }
  }

  template <typename Number>
  Number number() {
    take(Encoder::padding(at_, sizeof(Number)));
    Number value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  /// Reads a number of elements, each of which takes at least `bytes_each`.
  size_t count(size_t bytes_each) {
    const size_t value = number<uint32_t>();
    if (value > (bytes_ - at_) / bytes_each) throw std::runtime_error("it is cut off");
    return value;
  }
  std::string text() {
    const size_t bytes = count(1);
    const char *value = reinterpret_cast<const char *>(take(bytes));
    std::string text(value, strnlen(value, bytes));
    if (!is_utf8(text)) throw std::runtime_error("a name in it is not UTF-8");
    return text;
  }
  Gid gid(size_t bytes = sizeof(Gid)) {
    Gid value;
    std::memcpy(value.data(), take(bytes), value.size());
    return value;
  }

 private:
  const uint8_t *take(size_t bytes) {
    if (bytes > bytes_ - at_) throw std::runtime_error("it is cut off");
    at_ += bytes;
    return data_ + at_ - bytes;
  }

  const uint8_t *data_;
  size_t bytes_;
  size_t at_ = 4;
};

void write_time(Encoder &out, const rmw_time_t &time) {
  out.number<uint64_t>(time.sec);
  out.number<uint64_t>(time.nsec);
}

rmw_time_t read_time(Decoder &in) {
  rmw_time_t time;
  time.sec = in.number<uint64_t>();
  time.nsec = in.number<uint64_t>();
  return time;
}

void write_qos(Encoder &out, const rmw_qos_profile_t &qos) {
  out.number<uint8_t>(qos.history);
  out.number<uint8_t>(qos.reliability);
  out.number<uint8_t>(qos.durability);
  out.number<uint8_t>(qos.liveliness);
  out.number<uint64_t>(qos.depth);
  write_time(out, qos.deadline);
  write_time(out, qos.lifespan);
  write_time(out, qos.liveliness_lease_duration);
  out.number<uint8_t>(qos.avoid_ros_namespace_conventions);
}

rmw_qos_profile_t read_qos(Decoder &in) {
  rmw_qos_profile_t qos{};
  qos.history = static_cast<rmw_qos_history_policy_t>(in.number<uint8_t>());
  qos.reliability = static_cast<rmw_qos_reliability_policy_t>(in.number<uint8_t>());
  qos.durability = static_cast<rmw_qos_durability_policy_t>(in.number<uint8_t>());
  qos.liveliness = static_cast<rmw_qos_liveliness_policy_t>(in.number<uint8_t>());
  qos.depth = in.number<uint64_t>();
  qos.deadline = read_time(in);
  qos.lifespan = read_time(in);
  qos.liveliness_lease_duration = read_time(in);
  qos.avoid_ros_namespace_conventions = in.number<uint8_t>() != 0;
  return qos;
}

/// Version of the messages between contexts.
constexpr uint32_t version = 1;
/// Size of a gid in DDS, as all RMWs of this distribution of ROS 2 have it.
constexpr size_t dds_gid_bytes = RMW_GID_STORAGE_SIZE;

/// The least size of a node in CDR: three counts.
constexpr size_t node_bytes_min = 3 * sizeof(uint32_t);

/// Reads a node's namespace and name.
void read_names(Decoder &in, KnownNode &node) {
  node.name_space = in.text();
  node.name = in.text();
  int is_valid = RMW_NODE_NAME_VALID;
  if (rmw_validate_node_name(node.name.c_str(), &is_valid, nullptr) != RMW_RET_OK ||
      is_valid != RMW_NODE_NAME_VALID) {
    throw std::runtime_error("a node in it has an invalid name");
  }
}

std::vector<Gid> read_gids(Decoder &in) {
  std::vector<Gid> gids(in.count(dds_gid_bytes));
  for (Gid &gid : gids) gid = in.gid(dds_gid_bytes);
  return gids;
}

}  // namespace

std::vector<uint8_t> encode_context(const Gid &gid, const Participant &participant) {
  Encoder out;
  out.number(version);
  out.gid(gid);
  out.text(participant.enclave);
  out.count(participant.nodes.size());
  for (const KnownNode &node : participant.nodes) {
    out.text(node.name_space);
    out.text(node.name);
    out.count(node.endpoints.size());
    for (const Gid &endpoint : node.endpoints) {
      const KnownEndpoint &it = participant.endpoints.at(endpoint);
      out.gid(endpoint);
      out.number<uint8_t>(it.is_publisher);
      out.text(it.topic);
      out.text(it.type);
      out.text(it.hash);
      write_qos(out, it.qos);
    }
  }
  return out.take();
}

std::pair<Gid, Participant> decode_context(const uint8_t *data, size_t bytes) {
  Decoder in(data, bytes);
  if (in.number<uint32_t>() != version) {
    throw std::runtime_error("it comes from another version of rmw_myelin; install the same version everywhere");
  }
  const Gid gid = in.gid();
  Participant participant;
  participant.enclave = in.text();
  for (size_t nodes = in.count(node_bytes_min); nodes > 0; --nodes) {
    // Grows node by node: memory follows the size of the message, not the count that it claims.
    KnownNode &node = participant.nodes.emplace_back();
    read_names(in, node);
    node.endpoints.resize(in.count(sizeof(Gid)));
    for (Gid &endpoint : node.endpoints) {
      endpoint = in.gid();
      KnownEndpoint &it = participant.endpoints[endpoint];
      it.is_publisher = in.number<uint8_t>() != 0;
      it.topic = in.text();
      it.type = in.text();
      it.hash = in.text();
      it.qos = read_qos(in);
    }
  }
  return {gid, std::move(participant)};
}

std::vector<uint8_t> encode_dds_nodes(const Gid &gid, const std::vector<DdsNode> &nodes) {
  Encoder out;
  out.gid(gid, dds_gid_bytes);
  out.count(nodes.size());
  for (const DdsNode &node : nodes) {
    out.text(node.name_space);
    out.text(node.name);
    for (const std::vector<Gid> *gids : {&node.readers, &node.writers}) {
      out.count(gids->size());
      for (const Gid &endpoint : *gids) out.gid(endpoint, dds_gid_bytes);
    }
  }
  return out.take();
}

std::pair<Gid, std::vector<KnownNode>> decode_dds_nodes(const uint8_t *data, size_t bytes) {
  Decoder in(data, bytes);
  const Gid gid = in.gid(dds_gid_bytes);
  std::vector<KnownNode> nodes;
  for (size_t count = in.count(node_bytes_min); count > 0; --count) {
    KnownNode &node = nodes.emplace_back();
    read_names(in, node);
    node.endpoints = read_gids(in);
    const std::vector<Gid> writers = read_gids(in);
    node.endpoints.insert(node.endpoints.end(), writers.begin(), writers.end());
  }
  return {gid, std::move(nodes)};
}

bool is_utf8(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t which) { return static_cast<uint8_t>(which < text.size() ? text[which] : 0); };
    const uint8_t first = byte(at);
    size_t more = 0;
    uint32_t point = first;
    if (first >= 0xc2 && first < 0xe0) more = 1, point &= 0x1f;
    else if (first >= 0xe0 && first < 0xf0) more = 2, point &= 0x0f;
    else if (first >= 0xf0 && first < 0xf5) more = 3, point &= 0x07;
    else if (first >= 0x80) return false;
    for (size_t next = 1; next <= more; ++next) {
      if ((byte(at + next) & 0xc0) != 0x80) return false;
      point = point << 6 | (byte(at + next) & 0x3f);
    }
    const bool is_too_long = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (is_too_long || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    at += 1 + more;
  }
  return true;
}

}  // namespace rmw_myelin
