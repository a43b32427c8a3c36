// A DDS topic of an instance, and what of the quality of service becomes what in the library.
#pragma once

#include <functional>
#include <string>

#include "dds/ddsc/dds_psmx.h"
#include "instance.hpp"

namespace psmx_myelin {

/// Whether endpoints of a type and a quality of service go through shared memory; those that do not go
/// by the network, as if the plug-in were not there.
bool is_supported(const Config &config, dds_psmx_endpoint_type_t of, dds_data_type_properties_t type,
                  const dds_qos_t *qos);

/// Whether a quality of service says so, and how long a writer may wait then.
bool is_reliable(const dds_qos_t *qos, dds_duration_t *limit = nullptr);
bool keeps_all(const dds_qos_t *qos);

struct Topic : dds_psmx_topic_t {
  Topic(Instance &instance, const char *name, dds_data_type_properties_t properties, uint32_t bytes);

  bool is_memcpy_safe() const { return (properties & DDS_DATA_TYPE_IS_MEMCPY_SAFE) != 0; }
  bool has_key() const { return (properties & DDS_DATA_TYPE_CONTAINS_KEY) != 0; }
  /// How the library is to call and treat it for an endpoint of this quality of service.
  std::string library_name(const dds_qos_t *qos) const;
  myelin_topic_options options(const dds_qos_t *qos, dds_psmx_endpoint_type_t of) const;
  /// Throws a std::runtime_error.
  myelin_topic *open(const std::string &name, const myelin_topic_options &options) const;
  /// Waits until an endpoint is matched with all others that its node knows of, by a function that does so
  /// for a number of them and a time. DDS finds them by ways of its own, and what is published between its
  /// match and the library's would be lost. Of two endpoints that are made at once one at least knows of the
  /// other here, and DDS tells of neither before.
  void settle(const std::string &name, uint64_t endpoint, bool is_publisher,
              const std::function<myelin_code(size_t, uint64_t)> &wait_for_match) const;

  Instance &instance;
  const std::string name;
  const dds_data_type_properties_t properties;
  /// Of a value in memory; 0: not known.
  const uint32_t bytes;
};

}  // namespace psmx_myelin
