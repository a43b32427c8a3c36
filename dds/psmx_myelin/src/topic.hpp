// A DDS topic of an instance. Converts its quality of service to the library's settings.
#pragma once

#include <string>

#include "dds/ddsc/dds_psmx.h"
#include "instance.hpp"

namespace psmx_myelin {

/// Whether endpoints of this type and quality of service use shared memory. All others use the network, as if there
/// were no plug-in.
bool is_supported(const Config &config, dds_psmx_endpoint_type_t of, dds_data_type_properties_t type,
                  const dds_qos_t *qos);

/// Read one setting of a quality of service. `limit` becomes how long a reliable writer may block.
bool is_reliable(const dds_qos_t *qos, dds_duration_t *limit = nullptr);
bool keeps_all(const dds_qos_t *qos);

struct Topic : dds_psmx_topic_t {
  Topic(Instance &instance, const char *name, dds_data_type_properties_t properties, uint32_t bytes);

  bool is_memcpy_safe() const { return (properties & DDS_DATA_TYPE_IS_MEMCPY_SAFE) != 0; }
  bool has_key() const { return (properties & DDS_DATA_TYPE_CONTAINS_KEY) != 0; }
  /// The library's options for an endpoint of this quality of service.
  myelin_topic_options options(const dds_qos_t *qos, dds_psmx_endpoint_type_t of) const;
  /// Opens the library's topic for it. Throws a std::runtime_error.
  myelin_topic *open(const dds_qos_t *qos, const myelin_topic_options &options) const;

  Instance &instance;
  const std::string name;
  const dds_data_type_properties_t properties;
  /// Size of a value in memory; 0: not known.
  const uint32_t bytes;
};

}  // namespace psmx_myelin
