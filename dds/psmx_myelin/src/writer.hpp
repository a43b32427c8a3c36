// A DDS writer's connection to the library.
#pragma once

#include <mutex>

#include "topic.hpp"

namespace psmx_myelin {

struct Writer : dds_psmx_endpoint_t {
  /// Throws a std::runtime_error.
  Writer(Topic &topic, const dds_qos_t *qos);
  ~Writer();

  /// Returns memory for a payload. Returns NULL and logs the reason if there is none.
  dds_loaned_sample_t *loan(uint32_t bytes);
  dds_return_t publish(dds_loaned_sample_t *data);
  /// Frees a loan that CycloneDDS drops, published or not.
  void free(dds_loaned_sample_t *data);

 private:
  const Topic &topic_;
  /// Guards the publisher and its loans: one thread at a time may use them.
  std::mutex mutex_;
  myelin_publisher *publisher_ = nullptr;
  bool has_overrun_ = false;
};

}  // namespace psmx_myelin
