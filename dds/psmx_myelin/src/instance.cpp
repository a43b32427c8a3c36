#include "instance.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "dds/ddsrt/md5.h"
#include "frame.hpp"
#include "support.hpp"
#include "topic.hpp"
#include "version.hpp"

namespace psmx_myelin {
namespace {

/// How long a new endpoint waits at most until the library has matched it, which takes 0.1 ms on a quiet machine. DDS
/// finds the same peers by other means, but announces an endpoint only after this wait. A sample that is published after
/// DDS's match and before the library's would be lost.
constexpr uint64_t match_limit_ns = 1'000'000'000;

/// Hashes several values. Each is preceded by its length, so that different values give different bytes.
class Hash {
 public:
  Hash() { ddsrt_md5_init(&state_); }
  Hash &add(const void *data, size_t bytes) {
    const uint64_t length = bytes;
    append(&length, sizeof length);
    append(data, bytes);
    return *this;
  }
  template <typename Number>
  Hash &add_number(Number number) {
    return add(&number, sizeof number);
  }
  Hash &add_text(const std::string &text) { return add(text.data(), text.size()); }
  dds_psmx_node_identifier_t finish() {
    dds_psmx_node_identifier_t hash;
    ddsrt_md5_finish(&state_, hash.x);
    return hash;
  }

 private:
  void append(const void *data, size_t bytes) {
    ddsrt_md5_append(&state_, static_cast<const ddsrt_md5_byte_t *>(data), static_cast<unsigned>(bytes));
  }
  ddsrt_md5_state_t state_;
};

/// Parses `LOCATOR` in CycloneDDS's form, 32 hexadecimal digits. It replaces the computed locator.
dds_psmx_node_identifier_t locator_of(const std::string &digits) {
  dds_psmx_node_identifier_t locator{};
  size_t count = 0;
  for (unsigned byte; count < sizeof locator.x; ++count) {
    if (std::sscanf(digits.c_str() + std::min(2 * count, digits.size()), "%2x", &byte) != 1) break;
    locator.x[count] = static_cast<uint8_t>(byte);
  }
  if (count != sizeof locator.x || digits.size() != 2 * count) {
    throw std::invalid_argument("config: LOCATOR=" + digits + ": set it to 32 hexadecimal digits");
  }
  return locator;
}

/// Nodes can match if their sockets are in one folder on one running kernel. The path does not tell this: two
/// containers may have different paths for one folder, and the same path for two folders.
dds_psmx_node_identifier_t locator_of_folder(myelin_node *node, dds_psmx_instance_id_t id) {
  char folder[4096];
  if (myelin_node_runtime_dir(node, folder, sizeof folder) != MYELIN_OK) {
    throw std::runtime_error(myelin_error_message());
  }
  struct stat status;
  if (stat(folder, &status) != 0) throw std::runtime_error(std::string(folder) + " cannot be read");
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  uint64_t layout = 0;
  myelin_payload_hash(FramePayload().get(), &layout);
  return Hash().add_text(boot).add_number(status.st_dev).add_number(status.st_ino).add_number(layout)
      .add_number(id).finish();
}

bool is_supported(dds_psmx_t *psmx, dds_psmx_endpoint_type_t of, dds_data_type_properties_t type,
                  const dds_qos_t *qos) {
  return guarded(false, [&] {
    return is_supported(static_cast<Instance *>(psmx)->config, of, type, qos);
  });
}

dds_psmx_topic_t *create_topic(dds_psmx_t *psmx, const char *name, const char *,
                               dds_data_type_properties_t properties, const ddsi_type *, uint32_t bytes) {
  return guarded<dds_psmx_topic_t *>(nullptr, [&] {
    return new Topic(*static_cast<Instance *>(psmx), name, properties, bytes);
  });
}

dds_return_t delete_topic(dds_psmx_topic_t *topic) {
  delete static_cast<Topic *>(topic);
  return DDS_RETCODE_OK;
}

dds_psmx_node_identifier_t node_id(const dds_psmx_t *psmx) {
  return static_cast<const Instance *>(psmx)->locator;
}

dds_psmx_features_t features(const dds_psmx_t *) {
  return DDS_PSMX_FEATURE_SHARED_MEMORY | DDS_PSMX_FEATURE_ZERO_COPY;
}

void delete_psmx(dds_psmx_t *psmx) { delete static_cast<Instance *>(psmx); }

/// The two operations that stay empty tell CycloneDDS that this is version 1 of the interface.
dds_psmx_ops_t operations() {
  dds_psmx_ops_t made{};
  made.type_qos_supported = is_supported;
  made.delete_topic = delete_topic;
  made.get_node_id = node_id;
  made.supported_features = features;
  made.create_topic_with_type = create_topic;
  made.delete_psmx = delete_psmx;
  return made;
}

}  // namespace

Instance::Instance(dds_psmx_instance_id_t id, const char *text) : dds_psmx_t{}, config(text), id(id) {
  ops = operations();
  myelin_node_options options = MYELIN_INIT(myelin_node_options);
  options.network = -1;  // DDS itself reaches other hosts
  options.match_limit_ns = match_limit_ns;
  if (!config.folder.empty()) options.runtime_dir = config.folder.c_str();
  if (!config.group.empty()) options.group = config.group.c_str();
  if (myelin_node_open("cyclonedds", &options, &node) != MYELIN_OK) {
    const std::string folder = config.folder.empty() ? "" : "FOLDER=" + config.folder + ": ";
    const std::string group = config.group.empty() ? "" : "GROUP=" + config.group + ": ";
    throw std::runtime_error(folder + group + myelin_error_message());
  }
  try {
    locator = config.locator.empty() ? locator_of_folder(node, id) : locator_of(config.locator);
    delivery = std::make_unique<Delivery>(node, config.wait);
  } catch (...) {
    myelin_node_close(node);
    throw;
  }
}

Instance::~Instance() {
  delivery.reset();
  myelin_node_close(node);
}

std::string Instance::topic_name(const char *topic, const char *partition) const {
  const auto hash =
      Hash().add_number(id).add(locator.x, sizeof locator.x).add_text(partition).add_text(topic).finish();
  std::string name = "dds/";
  for (const char *text : {partition, topic}) {
    for (const char *at = text; *at != '\0' && name.size() < 200; ++at) {
      const bool is_plain = static_cast<unsigned char>(*at) > ' ' && static_cast<unsigned char>(*at) < 127;
      name += is_plain ? *at : '_';
    }
    if (text == partition && *partition != '\0') name += '/';
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%02x%02x%02x%02x%02x%02x%02x%02x", hash.x[0], hash.x[1], hash.x[2],
                hash.x[3], hash.x[4], hash.x[5], hash.x[6], hash.x[7]);
  return name + '#' + digits;
}

}  // namespace psmx_myelin

/// CycloneDDS calls this for `type="myelin"`.
extern "C" __attribute__((visibility("default"))) dds_return_t myelin_create_psmx(
    dds_psmx_t **made, dds_psmx_instance_id_t id, const char *config) {
  return psmx_myelin::guarded(DDS_RETCODE_BAD_PARAMETER, [&] {
    psmx_myelin::check_version();
    *made = new psmx_myelin::Instance(id, config);
    return DDS_RETCODE_OK;
  });
}
