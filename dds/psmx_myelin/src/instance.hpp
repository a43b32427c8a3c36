// A <PubSubMessageExchange> of a domain: one node of the library and one delivering thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config.hpp"
#include "delivery.hpp"
#include "dds/ddsc/dds_psmx.h"

namespace psmx_myelin {

struct Instance : dds_psmx_t {
  /// Throws a std::exception that names the fault and the remedy.
  Instance(dds_psmx_instance_id_t id, const char *config);
  ~Instance();

  /// Returns the library's name of a DDS topic in a partition.
  std::string topic_name(const char *topic, const char *partition) const;

  const Config config;
  const dds_psmx_instance_id_t id;
  myelin_node *node = nullptr;
  /// Equal for all instances whose nodes can match, and different for all others.
  dds_psmx_node_identifier_t locator{};
  std::unique_ptr<Delivery> delivery;
};

}  // namespace psmx_myelin
