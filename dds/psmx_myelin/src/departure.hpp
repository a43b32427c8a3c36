// Departures: DDS loses a writer of another process because it is deleted or out of reach. DDS learns this from the
// network, possibly before the delivering thread has taken the writer's last samples.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "dds/dds.h"

struct ddsi_domaingv;

namespace psmx_myelin {

class Delivery;

using Guid = std::array<uint8_t, 16>;

/// A writer that DDS has lost, as long as its readers have not been notified.
struct Departure {
  ddsi_domaingv *domain;
  Guid writer;
  std::vector<Guid> readers;
  dds_instance_handle_t handle;
  int32_t ownership_strength;
  bool autodispose;
  dds_duration_t lifespan;
  /// Time of the loss, by the library's clock.
  uint64_t since_ns;
  /// Whether the notification of the readers is still held back.
  std::atomic<bool> is_held{true};
  /// Whether a delivering thread has stored all samples of the writer. Guarded by the mutex of its Delivery.
  bool is_stored = false;
};

/// From now on, reports each departure of the domain to `delivery`, and waits until it has stored the samples. Any
/// thread may call it. A second call has no effect.
void watch_departures(ddsi_domaingv *domain, Delivery &delivery);
/// Ends the reports to `delivery`. The domain may not exist any more.
void forget_departures(Delivery &delivery);

}  // namespace psmx_myelin
