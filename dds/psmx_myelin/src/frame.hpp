// Format of a DDS sample in a sample of the library: a header and the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dds/ddsc/dds_psmx.h"
#include "myelin.h"

namespace psmx_myelin {

/// Its layout is part of the topic's type, so the library does not match programs with different layouts.
struct FrameHeader {
  uint8_t writer[16];
  int64_t timestamp_ns;
  uint32_t status;
  /// Size of the payload.
  uint32_t bytes;
  /// A `dds_loaned_sample_state_t`.
  uint8_t state;
  /// Whether the payload begins with a CDR header that the writer has put there: see `slack` in writer.cpp.
  uint8_t has_header_inside;
  uint8_t unused[2];
  /// These four bytes are the CDR header of a serialised sample. They come last, so that the payload follows.
  uint16_t cdr_identifier;
  uint16_t cdr_options;
};
constexpr size_t cdr_header_bytes = 4;
static_assert(sizeof(FrameHeader) == 40, "a payload of 64 B fits into the library's ring, 104 B");
static_assert(offsetof(FrameHeader, cdr_identifier) + cdr_header_bytes == sizeof(FrameHeader));

/// Describes the payload of a topic of frames to the library.
class FramePayload {
 public:
  FramePayload() {
    payload_.form = MYELIN_HEADER_SLICE;
    payload_.type.kind = MYELIN_U8;
    payload_.header.kind = MYELIN_STRUCT;
    payload_.header.structure = &structure_;
  }
  FramePayload(const FramePayload &) = delete;
  const myelin_payload *get() const { return &payload_; }

 private:
#define FRAME_FIELD(member, kind, ...) \
  {#member, offsetof(FrameHeader, member), {kind, nullptr, {__VA_ARGS__}}}
  const myelin_field fields_[9] = {
      FRAME_FIELD(writer, MYELIN_U8, 16),       FRAME_FIELD(timestamp_ns, MYELIN_I64),
      FRAME_FIELD(status, MYELIN_U32),          FRAME_FIELD(bytes, MYELIN_U32),
      FRAME_FIELD(state, MYELIN_U8),            FRAME_FIELD(has_header_inside, MYELIN_U8),
      FRAME_FIELD(unused, MYELIN_U8, 2),        FRAME_FIELD(cdr_identifier, MYELIN_U16),
      FRAME_FIELD(cdr_options, MYELIN_U16),
  };
#undef FRAME_FIELD
  const myelin_struct structure_ = {
      sizeof(myelin_struct), "DdsSample", sizeof(FrameHeader), alignof(FrameHeader), fields_,
      sizeof(fields_) / sizeof(*fields_), sizeof(myelin_field)};
  myelin_payload payload_ = MYELIN_INIT(myelin_payload);
};

inline FrameHeader frame_header(const dds_psmx_metadata_t &metadata) {
  FrameHeader header{};
  std::memcpy(header.writer, metadata.guid.v, sizeof header.writer);
  header.timestamp_ns = metadata.timestamp;
  header.status = metadata.statusinfo;
  header.bytes = metadata.sample_size;
  header.state = static_cast<uint8_t>(metadata.sample_state);
  header.cdr_identifier = metadata.cdr_identifier;
  header.cdr_options = metadata.cdr_options;
  return header;
}

inline dds_psmx_metadata_t metadata_of(const FrameHeader &header, dds_psmx_instance_id_t instance) {
  dds_psmx_metadata_t metadata{};
  metadata.sample_state = static_cast<dds_loaned_sample_state_t>(header.state);
  metadata.instance_id = instance;
  metadata.sample_size = header.bytes;
  std::memcpy(metadata.guid.v, header.writer, sizeof header.writer);
  metadata.timestamp = header.timestamp_ns;
  metadata.statusinfo = header.status;
  metadata.cdr_identifier = header.cdr_identifier;
  metadata.cdr_options = header.cdr_options;
  return metadata;
}

inline bool is_raw(dds_loaned_sample_state_t state) {
  return state == DDS_LOANED_SAMPLE_STATE_RAW_KEY || state == DDS_LOANED_SAMPLE_STATE_RAW_DATA;
}

inline bool is_serialized(dds_loaned_sample_state_t state) {
  return state == DDS_LOANED_SAMPLE_STATE_SERIALIZED_KEY ||
         state == DDS_LOANED_SAMPLE_STATE_SERIALIZED_DATA;
}

}  // namespace psmx_myelin
