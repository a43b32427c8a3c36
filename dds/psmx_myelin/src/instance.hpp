// A <PubSubMessageExchange> of a domain: one node of the library, and one thread that delivers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "config.hpp"
#include "delivery.hpp"
#include "dds/ddsc/dds_psmx.h"

namespace psmx_myelin {

struct Instance : dds_psmx_t {
  /// Throws a std::exception that says why, and what to do.
  Instance(dds_psmx_instance_id_t id, const char *config);
  ~Instance();

  /// What a DDS topic in a partition is called in the library.
  std::string topic_name(const char *topic, const char *partition) const;

  const Config config;
  const dds_psmx_instance_id_t id;
  myelin_node *node = nullptr;
  /// The same for all instances whose nodes meet, and for no other.
  dds_psmx_node_identifier_t locator{};
  std::unique_ptr<Delivery> delivery;

  /// Guards what follows.
  std::mutex mutex;
  /// Nodes that have not answered: until then no endpoint waits for them.
  std::unordered_map<uint64_t, uint64_t> silent_until_ns;
};

}  // namespace psmx_myelin
