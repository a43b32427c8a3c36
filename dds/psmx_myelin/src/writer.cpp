#include "writer.hpp"

#include <arpa/inet.h>

#include <stdexcept>

#include "frame.hpp"
#include "support.hpp"

namespace psmx_myelin {
namespace {

/// As many loans as the library allows, because CycloneDDS has no limit.
constexpr uint32_t loans_max = 4096;

/// Four bytes behind a payload that may be serialised. rmw_cyclonedds up to 4.2.1 requests the size without the CDR
/// header, but writes the header too (its issue 585). If the last of these bytes have been overwritten, the payload
/// begins with its header.
namespace slack {
constexpr uint8_t mark[cdr_header_bytes] = {0xa7, 0x5c, 0xe3, 0x91};

bool is_written(const uint8_t *at, uint32_t padding) {
  return std::memcmp(at, mark, cdr_header_bytes - padding) != 0;
}
}  // namespace slack

struct WriterLoan : dds_loaned_sample_t {
  dds_psmx_metadata_t own_metadata;
  myelin_loan loan = MYELIN_INIT(myelin_loan);
};

void free_loan(dds_loaned_sample_t *data) {
  static_cast<Writer *>(data->loan_origin.psmx_endpoint)->free(data);
}

dds_loaned_sample_t *request_loan(dds_psmx_endpoint_t *endpoint, uint32_t bytes) {
  return guarded<dds_loaned_sample_t *>(nullptr,
                                        [&] { return static_cast<Writer *>(endpoint)->loan(bytes); });
}

dds_return_t write(dds_psmx_endpoint_t *endpoint, dds_loaned_sample_t *data) {
  return guarded(DDS_RETCODE_ERROR, [&] { return static_cast<Writer *>(endpoint)->publish(data); });
}

}  // namespace

Writer::Writer(Topic &topic, const dds_qos_t *qos)
    : dds_psmx_endpoint_t{}, topic_(topic) {
  ops.request_loan = request_loan;
  ops.write = write;
  myelin_topic *opened = topic.open(qos, topic.options(qos, DDS_PSMX_ENDPOINT_TYPE_WRITER));
  myelin_publisher_options options = MYELIN_INIT(myelin_publisher_options);
  options.loans_max = loans_max;
  const myelin_code code = myelin_publisher_open(opened, &options, &publisher_);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(opened);
  if (code != MYELIN_OK) throw std::runtime_error(why);
}

Writer::~Writer() { myelin_publisher_close(publisher_); }

dds_loaned_sample_t *Writer::loan(uint32_t bytes) {
  auto made = std::make_unique<WriterLoan>();
  const size_t behind = topic_.is_memcpy_safe() ? 0 : sizeof slack::mark;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t all = sizeof(FrameHeader) + bytes + behind;
    if (myelin_publisher_loan(publisher_, all, &made->loan) != MYELIN_OK) {
      PSMX_ERROR("topic %s: %s", topic_.name.c_str(), myelin_error_message());
      return nullptr;
    }
  }
  auto *payload = static_cast<uint8_t *>(made->loan.data) + sizeof(FrameHeader);
  std::memcpy(payload + bytes, slack::mark, behind);
  made->ops.free = free_loan;
  made->metadata = &made->own_metadata;
  made->sample_ptr = payload;
  return made.release();
}

dds_return_t Writer::publish(dds_loaned_sample_t *data) {
  auto &loan = *static_cast<WriterLoan *>(data);
  FrameHeader header = frame_header(loan.own_metadata);
  if (is_serialized(loan.own_metadata.sample_state) && !topic_.is_memcpy_safe()) {
    const auto *payload = static_cast<const uint8_t *>(data->sample_ptr);
    const uint32_t padding = ntohs(header.cdr_options) & 3;
    // With padding, only a few bytes of the mark are overwritten, and perhaps with the same values.
    const bool looks_alike = padding > 0 && has_overrun_ && header.bytes >= cdr_header_bytes &&
                             std::memcmp(payload, &header.cdr_identifier, cdr_header_bytes) == 0;
    header.has_header_inside = looks_alike || slack::is_written(payload + header.bytes, padding);
  }
  std::memcpy(loan.loan.data, &header, sizeof header);
  data->sample_ptr = nullptr;

  const std::lock_guard<std::mutex> lock(mutex_);
  has_overrun_ |= header.has_header_inside != 0;
  const myelin_code code = myelin_publisher_publish(publisher_, &loan.loan, nullptr);
  if (code != MYELIN_OK && code != MYELIN_ERROR_RELIABLE_TIMEOUT) {
    PSMX_ERROR("topic %s: %s", topic_.name.c_str(), myelin_error_message());
  }
  return return_of(code);
}

void Writer::free(dds_loaned_sample_t *data) {
  auto *loan = static_cast<WriterLoan *>(data);
  if (loan->loan.data != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    myelin_publisher_discard(publisher_, &loan->loan);
  }
  delete loan;
}

}  // namespace psmx_myelin
