// What the records of the library's endpoints say about ROS 2. An endpoint announces its settings, and attributes for
// the rest:
//
//   ros.node       the node: `/name_space/name`
//   ros.type_hash  `RIHS01_…`
//   ros.depth      the depth of the user; 0: KEEP_ALL. That of the library may be larger.
//   ros.topic      the topic in DDS, if the library's topic has another name
//   ros.enclave    the enclave of a node
//
// A node is a publisher on the topic `ros_nodes` that publishes nothing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "endpoint.hpp"

namespace rmw_myelin {

/// Identifies an endpoint or a DDS participant. On Myelin it contains the library's id, and on other RMWs it is the GUID
/// in DDS.
using Gid = std::array<uint8_t, 16>;

/// A publisher or a subscriber of any process.
struct KnownEndpoint {
  Gid gid;
  bool is_publisher;
  /// Name in DDS.
  std::string topic;
  std::string type;
  /// `RIHS01_…`, or empty if it is not known.
  std::string hash;
  rmw_qos_profile_t qos;
  /// Its node, if it is known; and otherwise, whether it belongs to a program that has nodes.
  std::optional<NodeName> node;
  bool is_of_nodes = false;
};

/// The attributes of a record that are about ROS 2.
struct Attributes {
  std::optional<NodeName> node;
  std::string hash;
  std::string topic;
  std::string enclave;
  std::optional<size_t> depth;
  /// An attribute that cannot be read, or NULL. Then all others are left out.
  const char *unreadable = nullptr;
};

/// The topic whose publishers are the nodes.
constexpr const char *nodes_topic = "ros_nodes";

/// Returns the full name of a node, and the reverse; nothing for a name that is not valid.
std::string full_name(const NodeName &node);
std::optional<NodeName> node_of(const std::string &full_name);
/// Whether both parts of a node's name are valid. Then they are ASCII.
bool is_valid(const NodeName &node);

/// The topic of an endpoint in the library.
std::string library_name(const Endpoint &endpoint);

/// Names and values of the attributes of a new endpoint, and of a node.
using NamesAndValues = std::vector<std::pair<const char *, std::string>>;
NamesAndValues attributes_of(const Endpoint &endpoint);
NamesAndValues attributes_of(const NodeName &node, const std::string &enclave);
/// Sets them as options of a topic, which refer to them and to `elements`.
void set_attributes(myelin_topic_options &options, const NamesAndValues &attributes,
                    std::vector<myelin_attribute> &elements);

/// Reads the attributes of an endpoint. Any process may have written them.
Attributes read_attributes(myelin_graph *graph, uint64_t endpoint);

/// Converts an endpoint. A DDS program does not announce history and depth.
KnownEndpoint known(const myelin_graph_endpoint &endpoint, const Attributes &attributes);

/// Makes a gid from the library's id of an endpoint, and from a GUID in DDS.
Gid gid_of(uint64_t endpoint);
Gid gid_of(const uint8_t (&guid)[16]);

/// Converts a gid to ROS 2's struct.
rmw_gid_t ros_gid(const Gid &gid);

}  // namespace rmw_myelin
