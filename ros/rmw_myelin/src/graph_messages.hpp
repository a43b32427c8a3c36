// What contexts tell of themselves: to each other, and to other RMWs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph.hpp"

namespace rmw_myelin {

/// A context's gid and all that is in it. In the byte order of the host, and of this version: what another
/// one says is not understood, and passed over.
std::vector<uint8_t> encode_context(const Gid &gid, const Participant &participant);
std::optional<std::pair<Gid, Participant>> decode_context(const uint8_t *data, size_t bytes);

/// A node as other RMWs are told of it: its endpoints are named as in DDS.
struct DdsNode {
  std::string name_space;
  std::string name;
  std::vector<Gid> readers;
  std::vector<Gid> writers;
};

/// The nodes of a participant: a message of `rmw_dds_common/msg/ParticipantEntitiesInfo`.
std::vector<uint8_t> encode_dds_nodes(const Gid &gid, const std::vector<DdsNode> &nodes);
std::optional<std::pair<Gid, std::vector<KnownNode>>> decode_dds_nodes(const uint8_t *data, size_t bytes);

}  // namespace rmw_myelin
