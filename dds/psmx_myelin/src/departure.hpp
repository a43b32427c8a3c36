// Writers of other processes that DDS loses: deleted, or out of sight. The network tells of it, and may do so before
// the delivering thread has run since they wrote last.
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

/// A writer that DDS has just lost, before the readers that it was matched with are told.
struct Departure {
  ddsi_domaingv *domain;
  Guid writer;
  std::vector<Guid> readers;
  dds_instance_handle_t handle;
  int32_t ownership_strength;
  bool autodispose;
  dds_duration_t lifespan;
  /// When DDS lost it, by the library's clock.
  uint64_t since_ns;
  /// Whether the readers will be told only after this.
  std::atomic<bool> is_held{true};
  /// Whether a delivering thread has stored what there was; guarded by its mutex.
  bool is_stored = false;
};

/// Has a delivering thread told of the domain's departures, and waited for. Any thread; again, without effect.
void watch_departures(ddsi_domaingv *domain, Delivery &delivery);
/// The domain may be gone.
void forget_departures(Delivery &delivery);

}  // namespace psmx_myelin
