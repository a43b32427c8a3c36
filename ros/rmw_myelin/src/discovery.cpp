#include "discovery.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rmw_myelin {
namespace {

/// How a node looks for other nodes.
struct Discovery {
  bool over_network = true;
  std::string interface;
  std::string peers;
  bool multicast = false;
};

constexpr const char *loopback = "127.0.0.1";
/// Lease on the loopback interface. Nodes of other RMWs notice a dead process only after this time; nodes on rmw_myelin
/// notice it at once. On the loopback interface each heartbeat goes to 32 ports: with the library's own lease of 1 s,
/// this took 1.1 ms of CPU per second.
constexpr uint64_t lease_on_loopback_ns = 3'000'000'000;

/// Whether the user has switched off everything beyond this host.
bool is_network_off() {
  const char *network = std::getenv("MYELIN_NETWORK");
  return network != nullptr && std::strcmp(network, "0") == 0;
}

#if __has_include("rmw/discovery_options.h")
Discovery discovery(const rmw_init_options_t &options) {
  const rmw_discovery_options_t &requested = options.discovery_options;
  Discovery found;
  switch (requested.automatic_discovery_range) {
    case RMW_AUTOMATIC_DISCOVERY_RANGE_OFF:
      found.over_network = false;
      break;
    case RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST:
      if (requested.static_peers_count == 0) found.interface = loopback;
      found.peers = loopback;
      break;
    default:
      found.multicast = true;
  }
  const bool has_peers =
      requested.automatic_discovery_range == RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST ||
      requested.automatic_discovery_range == RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET;
  for (size_t at = 0; at < requested.static_peers_count; ++at) {
    if (!has_peers) {
      RCUTILS_LOG_WARN_NAMED(identifier, "static peers are ignored, because the discovery range does not use them");
      break;
    }
    if (!found.peers.empty()) found.peers += ',';
    found.peers += requested.static_peers[at].peer_address;
  }
  return found;
}
#else
Discovery discovery(const rmw_init_options_t &options) {
  Discovery found;
  found.multicast = options.localhost_only != RMW_LOCALHOST_ONLY_ENABLED;
  if (!found.multicast) found.interface = found.peers = loopback;
  return found;
}
#endif

/// The enclave in the folder that the client library has found by ROS_SECURITY_KEYSTORE; without
/// ROS_SECURITY_ENABLE there is none.
struct Enclave {
  std::string keystore, name;

  explicit Enclave(const char *folder) {
    const std::string path = folder == nullptr ? "" : folder;
    constexpr char middle[] = "/enclaves/";
    const size_t at = path.rfind(middle);
    if (path.empty()) return;
    if (at == std::string::npos) throw std::runtime_error(path + ": not the folder of an enclave of a keystore");
    keystore = path.substr(0, at);
    name = path.substr(at + sizeof middle - 2);
  }
};

const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

uint32_t domain_of(const rmw_init_options_t &options) {
  return options.domain_id == RMW_DEFAULT_DOMAIN_ID ? 0 : static_cast<uint32_t>(options.domain_id);
}

myelin_node *open_node(const rmw_init_options_t &options, bool &over_network) {
  const Discovery found = discovery(options);
  const std::string user_data =
      std::string("enclave=") + (options.enclave == nullptr ? "/" : options.enclave) + ";";
  myelin_node_options node_options = MYELIN_INIT(myelin_node_options);
  node_options.has_domain = true;
  node_options.domain = domain_of(options);
  over_network = found.over_network && !is_network_off();
  node_options.network = over_network ? 1 : -1;
  node_options.interface = or_null(found.interface);
  node_options.peers = or_null(found.peers);
  node_options.multicast = found.multicast;
  const bool is_on_loopback = found.interface == loopback;
  if (is_on_loopback && std::getenv("MYELIN_LEASE_MS") == nullptr) node_options.lease_ns = lease_on_loopback_ns;
  node_options.dds_user_data = user_data.c_str();
  const Enclave enclave(options.security_options.security_root_path);
  node_options.keystore = or_null(enclave.keystore);
  node_options.enclave = or_null(enclave.name);
  const bool is_enforced = options.security_options.enforce_security == RMW_SECURITY_ENFORCEMENT_ENFORCE;
  myelin_node *node = nullptr;
  myelin_code code = myelin_node_open(program_invocation_short_name, &node_options, &node);
  if (code == MYELIN_ERROR_NETWORK && over_network && !is_enforced) {
    RCUTILS_LOG_WARN_NAMED(identifier, "only nodes on rmw_myelin on this host can be reached: %s",
                           myelin_error_message());
    over_network = false;
    node_options.network = -1;
    code = myelin_node_open(program_invocation_short_name, &node_options, &node);
  }
  if (code != MYELIN_OK) throw std::runtime_error(myelin_error_message());
  return node;
}

}  // namespace rmw_myelin
