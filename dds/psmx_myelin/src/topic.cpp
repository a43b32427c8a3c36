#include "topic.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "frame.hpp"
#include "reader.hpp"
#include "support.hpp"
#include "writer.hpp"

namespace psmx_myelin {
namespace {

/// Depth between a writer and a reader's thread, which takes samples at once. If a reader is stopped, as many samples
/// stay in the writer's memory.
constexpr uint32_t depth_of_small = 256;
constexpr uint32_t depth_of_large = 64;
constexpr uint32_t small_bytes = 4096;
/// Longest history that the library can keep for late joiners.
constexpr int32_t history_max = 65'535;
/// A writer with KEEP_LAST waits no longer than this for a stopped reader.
constexpr uint64_t keep_last_wait_ns = 100'000'000;

/// Returns the one partition of an endpoint; "" is a partition too. Returns none if the endpoint is in several
/// partitions, or has a pattern.
std::optional<std::string> partition_of(const dds_qos_t *qos) {
  uint32_t count = 0;
  char **names = nullptr;
  if (!dds_qget_partition(qos, &count, &names) || count == 0) return "";
  std::string first = names[0];
  for (uint32_t at = 0; at < count; ++at) dds_free(names[at]);
  dds_free(names);
  if (count > 1 || first.find_first_of("*?") != std::string::npos) return std::nullopt;
  return first;
}

/// Returns how many samples late joiners get. Returns none if the library cannot keep as many.
std::optional<int32_t> late_joiners_history(const dds_qos_t *qos, dds_psmx_endpoint_type_t of) {
  dds_history_kind_t kind = DDS_HISTORY_KEEP_LAST;
  int32_t depth = 1;
  if (of == DDS_PSMX_ENDPOINT_TYPE_WRITER) {
    dds_qget_durability_service(qos, nullptr, &kind, &depth, nullptr, nullptr, nullptr);
  } else {
    dds_qget_history(qos, &kind, &depth);
  }
  if (kind == DDS_HISTORY_KEEP_ALL || depth > history_max) return std::nullopt;
  return depth;
}

bool is_for_late_joiners(const dds_qos_t *qos) {
  dds_durability_kind_t durability = DDS_DURABILITY_VOLATILE;
  dds_qget_durability(qos, &durability);
  return durability != DDS_DURABILITY_VOLATILE;
}

dds_psmx_endpoint_t *create_endpoint(dds_psmx_topic_t *psmx_topic, const dds_qos_t *qos,
                                     dds_psmx_endpoint_type_t type) {
  return guarded<dds_psmx_endpoint_t *>(nullptr, [&]() -> dds_psmx_endpoint_t * {
    auto &topic = *static_cast<Topic *>(psmx_topic);
    if (type == DDS_PSMX_ENDPOINT_TYPE_WRITER) return new Writer(topic, qos);
    return new Reader(topic, qos);
  });
}

dds_return_t delete_endpoint(dds_psmx_endpoint_t *endpoint) {
  return guarded(DDS_RETCODE_ERROR, [&] {
    if (endpoint->endpoint_type == DDS_PSMX_ENDPOINT_TYPE_WRITER) {
      delete static_cast<Writer *>(endpoint);
    } else {
      static_cast<Reader *>(endpoint)->close();
    }
    return DDS_RETCODE_OK;
  });
}

}  // namespace

bool is_reliable(const dds_qos_t *qos, dds_duration_t *limit) {
  dds_reliability_kind_t reliability = DDS_RELIABILITY_BEST_EFFORT;
  dds_qget_reliability(qos, &reliability, limit);
  return reliability == DDS_RELIABILITY_RELIABLE;
}

bool keeps_all(const dds_qos_t *qos) {
  dds_history_kind_t kind = DDS_HISTORY_KEEP_LAST;
  dds_qget_history(qos, &kind, nullptr);
  return kind == DDS_HISTORY_KEEP_ALL;
}

bool is_supported(const Config &config, dds_psmx_endpoint_type_t of, dds_data_type_properties_t type,
                  const dds_qos_t *qos) {
  const bool has_key = (type & DDS_DATA_TYPE_CONTAINS_KEY) != 0;
  if (has_key && !config.keyed_topics) return false;
  if (of == DDS_PSMX_ENDPOINT_TYPE_UNSET) return true;  // its endpoints decide
  if (!partition_of(qos)) return false;
  // The library keeps the last samples of a topic, DDS the last ones of each instance. With a durability service,
  // samples outlive their writer.
  dds_durability_kind_t durability = DDS_DURABILITY_VOLATILE;
  dds_qget_durability(qos, &durability);
  if (durability > DDS_DURABILITY_TRANSIENT_LOCAL) return false;
  if (durability != DDS_DURABILITY_VOLATILE && (has_key || !late_joiners_history(qos, of))) return false;

  // DDS monitors deadlines and liveliness by the samples that arrive over the network.
  dds_liveliness_kind_t liveliness = DDS_LIVELINESS_AUTOMATIC;
  dds_qget_liveliness(qos, &liveliness, nullptr);
  dds_duration_t deadline = DDS_INFINITY;
  dds_qget_deadline(qos, &deadline);
  return liveliness == DDS_LIVELINESS_AUTOMATIC && deadline == DDS_INFINITY;
}

Topic::Topic(Instance &instance, const char *name, dds_data_type_properties_t properties, uint32_t bytes)
    : dds_psmx_topic_t{}, instance(instance), name(name), properties(properties), bytes(bytes) {
  ops.create_endpoint = create_endpoint;
  ops.delete_endpoint = delete_endpoint;
}

myelin_topic_options Topic::options(const dds_qos_t *qos, dds_psmx_endpoint_type_t of) const {
  myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  // DDS matches by its own rules, of which the library knows those for reliability and durability. If it matched
  // endpoints that DDS does not match, the reader would get samples of a writer that it never finds.
  options.matching = MYELIN_MATCHING_REQUESTED_OFFERED;
  options.depth = is_memcpy_safe() && bytes <= small_bytes ? depth_of_small : depth_of_large;
  const bool is_writer = of == DDS_PSMX_ENDPOINT_TYPE_WRITER;
  dds_duration_t limit = 0;
  const bool reliable = is_reliable(qos, &limit);
  if (reliable) {
    options.reliability = is_writer && keeps_all(qos) ? MYELIN_RELIABLE_OR_FAIL : MYELIN_RELIABLE;
    options.reliable_ns = limit == DDS_INFINITY ? MYELIN_FOREVER : static_cast<uint64_t>(limit);
    if (!keeps_all(qos)) options.reliable_ns = std::min(options.reliable_ns, keep_last_wait_ns);
  }
  // A best-effort reader gets no history, as in DDS.
  if (is_for_late_joiners(qos) && (is_writer || reliable)) {
    options.transient_local = static_cast<uint32_t>(std::max(late_joiners_history(qos, of).value_or(1), 1));
    options.depth = std::max(options.depth, options.transient_local);
  }
  return options;
}

myelin_topic *Topic::open(const dds_qos_t *qos, const myelin_topic_options &options) const {
  static const FramePayload payload;
  const std::string in_library = instance.topic_name(name.c_str(), partition_of(qos).value_or("").c_str());
  myelin_topic *opened = nullptr;
  if (myelin_topic_open(instance.node, in_library.c_str(), payload.get(), &options, &opened) != MYELIN_OK) {
    throw std::runtime_error(myelin_error_message());
  }
  return opened;
}

}  // namespace psmx_myelin
