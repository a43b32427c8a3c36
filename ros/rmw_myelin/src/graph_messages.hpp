// What contexts tell of themselves: to each other, and to other RMWs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph.hpp"

namespace rmw_myelin {

/// Whether it is UTF-8: ROS 2's programs in Python read no other names.
bool is_utf8(const std::string &text);

/// A context's gid and all that is in it. In the byte order of the host, and of this version. Decoding throws a
/// std::exception that says what cannot be: another version, what is cut off, names that are no UTF-8. It takes no
/// more memory than a small multiple of the message, and the message is no larger than `graph_message_bytes_max`.
std::vector<uint8_t> encode_context(const Gid &gid, const Participant &participant);
std::pair<Gid, Participant> decode_context(const uint8_t *data, size_t bytes);

/// Some 50,000 endpoints.
constexpr size_t graph_message_bytes_max = 16 << 20;

/// A node as other RMWs are told of it: its endpoints are named as in DDS.
struct DdsNode {
  std::string name_space;
  std::string name;
  std::vector<Gid> readers;
  std::vector<Gid> writers;
};

/// The nodes of a participant: a message of `rmw_dds_common/msg/ParticipantEntitiesInfo`. Decoding throws as above.
std::vector<uint8_t> encode_dds_nodes(const Gid &gid, const std::vector<DdsNode> &nodes);
std::pair<Gid, std::vector<KnownNode>> decode_dds_nodes(const uint8_t *data, size_t bytes);

}  // namespace rmw_myelin
