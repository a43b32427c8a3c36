// A <PubSubMessageExchange> of a domain: one node of the library, and one thread that delivers.
#pragma once

#include <memory>
#include <string>

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
};

}  // namespace psmx_myelin
