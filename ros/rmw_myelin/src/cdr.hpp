// Plain CDR (XCDR1), little-endian: what ROS 2 and DDS have on the wire, and Myelin in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plan.hpp"

namespace rmw_myelin::cdr {

/// The encapsulation header in front of each message: plain CDR, little-endian.
constexpr size_t header_bytes = 4;

/// Bytes in front of a service's messages: the client, and the number of its request.
struct RequestHeader {
  uint64_t client;
  int64_t sequence;
};

/// How many bytes `message` is, with headers. Throws a std::runtime_error that names a member that is
/// longer than its type allows.
size_t encoded_bytes(const Plan &plan, const void *message, bool has_request_header = false);

/// Writes `message` to `to`, which has as many bytes as `encoded_bytes` said: nobody changes the message
/// in between.
void encode(const Plan &plan, const void *message, uint8_t *to, size_t bytes,
            const RequestHeader *header = nullptr);

/// Reads a message out of bytes that somebody else may have made up, and may yet change. Throws a
/// std::runtime_error that says what cannot be, and at which byte.
void decode(const Plan &plan, const uint8_t *from, size_t bytes, void *message,
            RequestHeader *header = nullptr);

/// Whether the bytes begin as a message that we can read; the reason why not, or NULL.
const char *header_error(const uint8_t *from, size_t bytes);

/// Writes the encapsulation header.
void put_header(uint8_t *to);

/// The header of a service's message alone.
RequestHeader request_header(const uint8_t *from, size_t bytes);

}  // namespace rmw_myelin::cdr
