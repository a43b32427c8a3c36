// Finds other hosts and RMWs by ROS 2's settings: domain, range of discovery, static peers.
#pragma once

#include "support.hpp"

namespace rmw_myelin {

/// Returns the number of the domain.
uint32_t domain_of(const rmw_init_options_t &options);

/// Opens the library's node. Sets `over_network` to whether other hosts and RMWs are reached; without CycloneDDS they
/// are not, and a warning is logged. Throws a std::runtime_error.
myelin_node *open_node(const rmw_init_options_t &options, bool &over_network);

}  // namespace rmw_myelin
