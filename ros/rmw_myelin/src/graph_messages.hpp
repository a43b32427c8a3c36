// The messages in which contexts describe themselves, to each other and to other RMWs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph.hpp"

namespace rmw_myelin {

/// Whether a text is UTF-8. ROS 2 programs in Python cannot read other names.
bool is_utf8(const std::string &text);

/// Encode and decode a context with its gid, nodes and endpoints. The format is that of this version, in the byte order
/// of the host. Decoding throws a std::exception that names the fault: another version, a message that is cut off, or a
/// name that is not UTF-8. The memory that decoding takes is at most a small multiple of the message, which has
/// `graph_message_bytes_max` at most.
std::vector<uint8_t> encode_context(const Gid &gid, const Participant &participant);
std::pair<Gid, Participant> decode_context(const uint8_t *data, size_t bytes);

/// Enough for some 50,000 endpoints.
constexpr size_t graph_message_bytes_max = 16 << 20;

/// A node as other RMWs see it. Endpoints are GUIDs in DDS.
struct DdsNode {
  std::string name_space;
  std::string name;
  std::vector<Gid> readers;
  std::vector<Gid> writers;
};

/// Encode and decode the nodes of a participant, as `rmw_dds_common/msg/ParticipantEntitiesInfo`. Decoding throws as
/// `decode_context` does.
std::vector<uint8_t> encode_dds_nodes(const Gid &gid, const std::vector<DdsNode> &nodes);
std::pair<Gid, std::vector<KnownNode>> decode_dds_nodes(const uint8_t *data, size_t bytes);

}  // namespace rmw_myelin
