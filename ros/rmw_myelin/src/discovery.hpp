// Which other hosts and RMWs there are, as ROS 2 says: domain, range of discovery, static peers.
#pragma once

#include "support.hpp"

namespace rmw_myelin {

/// The domain's number.
uint32_t domain_of(const rmw_init_options_t &options);

/// Opens the library's node. Sets whether it leads to other hosts and RMWs: without CycloneDDS it does not,
/// and a warning says so. Throws a std::runtime_error.
myelin_node *open_node(const rmw_init_options_t &options, bool &over_network);

}  // namespace rmw_myelin
