// Plain CDR (XCDR1), little-endian: the encoding of ROS 2 and DDS on the wire, and of Myelin in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plan.hpp"

namespace rmw_myelin::cdr {

/// Size of the encapsulation header in front of each message.
constexpr size_t header_bytes = 4;

/// Precedes each request and reply of a service: the client's id and the number of its request.
struct RequestHeader {
  uint64_t client;
  int64_t sequence;
};

/// Returns the size of the encoded `message` in bytes, headers included. Throws a std::runtime_error with the name of a
/// member that is longer than its type allows.
size_t encoded_bytes(const Plan &plan, const void *message, bool has_request_header = false);

/// Encodes `message` into `to`. `bytes` is the result of `encoded_bytes`, and nobody may change the message in between.
void encode(const Plan &plan, const void *message, uint8_t *to, size_t bytes,
            const RequestHeader *header = nullptr);

/// Decodes a message. The bytes are not trusted: another process may have made them up, and may change them meanwhile.
/// Throws a std::runtime_error that names the fault and its byte.
void decode(const Plan &plan, const uint8_t *from, size_t bytes, void *message,
            RequestHeader *header = nullptr);

/// Checks the encapsulation header. Returns the reason why the message cannot be read, or NULL if it can.
const char *header_error(const uint8_t *from, size_t bytes);

void put_header(uint8_t *to);

/// Reads only the header of a request or a reply. Returns zeros if the bytes have none.
RequestHeader request_header(const uint8_t *from, size_t bytes);

}  // namespace rmw_myelin::cdr
