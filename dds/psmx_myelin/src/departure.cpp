#include "departure.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "delivery.hpp"
#include "dds/ddsi/ddsi_domaingv.h"
// These need the header above.
#include "dds/ddsi/ddsi_builtin_topic_if.h"
#include "dds/ddsi/ddsi_endpoint.h"
#include "dds/ddsi/ddsi_proxy_endpoint.h"

namespace psmx_myelin {
namespace {

using WriteEndpoint = decltype(ddsi_builtin_topic_interface::builtintopic_write_endpoint);

/// Guards the watchers of all domains.
std::mutex mutex;
std::multimap<const ddsi_domaingv *, Delivery *> watchers;
/// CycloneDDS's own function, the same for all domains.
WriteEndpoint write_endpoint;

/// The beginning of the struct in which a proxy writer keeps a reader, in the versions that version.cpp lists.
/// CycloneDDS does not install its header, and no public function finds a writer that is being lost.
struct MatchedReader {
  ddsrt_avl_node_t node;
  ddsi_guid_t guid;
};

Guid bytes_of(const ddsi_guid_t &guid) {
  const ddsi_guid_t ordered = ddsi_hton_guid(guid);
  Guid bytes;
  static_assert(sizeof ordered == sizeof bytes);
  std::memcpy(bytes.data(), &ordered, sizeof bytes);
  return bytes;
}

std::vector<Guid> readers_of(const ddsi_proxy_writer &writer) {
  std::vector<Guid> readers;
  auto &lock = const_cast<ddsrt_mutex_t &>(writer.e.lock);
  ddsrt_mutex_lock(&lock);
  // Iterating uses only one value of the tree's definition, the position of the node, and this is the front here too.
  ddsrt_avl_iter_t at;
  for (void *each = ddsrt_avl_iter_first(&ddsi_wr_readers_treedef, &writer.readers, &at); each != nullptr;
       each = ddsrt_avl_iter_next(&at)) {
    readers.push_back(bytes_of(static_cast<const MatchedReader *>(each)->guid));
  }
  ddsrt_mutex_unlock(&lock);
  return readers;
}

void report(const ddsi_proxy_writer &writer) {
  auto departure = std::make_shared<Departure>();
  departure->readers = readers_of(writer);
  if (departure->readers.empty()) return;
  departure->domain = writer.e.gv;
  departure->writer = bytes_of(writer.e.guid);
  departure->handle = writer.e.iid;
  const dds_qos_t &qos = *writer.c.xqos;
  departure->ownership_strength = qos.ownership_strength.value;
  departure->autodispose = qos.writer_data_lifecycle.autodispose_unregistered_instances;
  departure->lifespan = qos.lifespan.duration;
  departure->since_ns = myelin_now();

  std::vector<Delivery *> deliveries;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [first, last] = watchers.equal_range(writer.e.gv);
    for (auto at = first; at != last; ++at) deliveries.push_back(at->second);
  }
  // An instance lives as long as DDS's threads, and this is one of them.
  for (Delivery *delivery : deliveries) delivery->depart(departure);
  departure->is_held.store(false);
}

/// CycloneDDS calls this to write its built-in topic, when it has found or lost an endpoint. After a loss, another
/// thread notifies the readers, and does so later than this call.
void watch_endpoint(const ddsi_entity_common *endpoint, ddsrt_wctime_t timestamp, bool is_alive, void *domain) {
  if (!is_alive && endpoint->kind == DDSI_EK_PROXY_WRITER) {
    report(*reinterpret_cast<const ddsi_proxy_writer *>(endpoint));
  }
  WriteEndpoint original;
  {
    // The lock waits for `watch_departures`, which sets the original function.
    const std::lock_guard<std::mutex> lock(mutex);
    original = write_endpoint;
  }
  original(endpoint, timestamp, is_alive, domain);
}

}  // namespace

void watch_departures(ddsi_domaingv *domain, Delivery &delivery) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [first, last] = watchers.equal_range(domain);
  for (auto at = first; at != last; ++at) {
    if (at->second == &delivery) return;
  }
  watchers.emplace(domain, &delivery);
  WriteEndpoint &called = domain->builtin_topic_interface->builtintopic_write_endpoint;
  if (called == watch_endpoint) return;
  write_endpoint = called;
  __atomic_store_n(&called, &watch_endpoint, __ATOMIC_RELEASE);  // DDS's threads are running
}

void forget_departures(Delivery &delivery) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto at = watchers.begin(); at != watchers.end();) {
    at = at->second == &delivery ? watchers.erase(at) : std::next(at);
  }
}

}  // namespace psmx_myelin
