// A DDS topic of an instance. Converts its quality of service to the library's settings.
#pragma once

#include <functional>
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
  /// The library's name and options for an endpoint of this quality of service.
  std::string library_name(const dds_qos_t *qos) const;
  myelin_topic_options options(const dds_qos_t *qos, dds_psmx_endpoint_type_t of) const;
  /// Throws a std::runtime_error.
  myelin_topic *open(const std::string &name, const myelin_topic_options &options) const;
  /// Waits until an endpoint is matched with all peers that its node knows, 1 s at most. `wait_for_match` waits for a
  /// number of matches and a time in ns. DDS finds the same peers by other means; a sample that is published after
  /// DDS's match and before the library's would be lost. If two endpoints are created at the same time, at least one of
  /// them knows the other here, and DDS announces none before.
  void settle(const std::string &name, uint64_t endpoint, bool is_publisher,
              const std::function<myelin_code(size_t, uint64_t)> &wait_for_match) const;

  Instance &instance;
  const std::string name;
  const dds_data_type_properties_t properties;
  /// Size of a value in memory; 0: not known.
  const uint32_t bytes;
};

}  // namespace psmx_myelin
