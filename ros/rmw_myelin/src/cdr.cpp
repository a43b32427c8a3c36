#include "cdr.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "rosidl_runtime_c/primitives_sequence.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rmw_myelin copies numbers from memory to little-endian CDR: it needs a little-endian machine"
#endif

namespace rmw_myelin::cdr {
namespace {

using CString = rosidl_runtime_c__String;
using CWideString = rosidl_runtime_c__U16String;
/// All sequences that rosidl generates for C have these members in this order.
using CSequence = rosidl_runtime_c__uint8__Sequence;

[[noreturn]] void too_long(const Step &step, size_t length, size_t bound) {
  throw std::runtime_error(std::string(step.name) + " has " + std::to_string(length) +
                           " elements, but its type allows only " + std::to_string(bound));
}

void check_bound(const Step &step, size_t length, size_t bound) {
  if (length > bound || length > UINT32_MAX) too_long(step, length, bound);
}

template <typename T>
T *at(void *message, size_t offset) {
  return reinterpret_cast<T *>(static_cast<uint8_t *>(message) + offset);
}

template <typename T>
const T *at(const void *message, size_t offset) {
  return reinterpret_cast<const T *>(static_cast<const uint8_t *>(message) + offset);
}

struct Text {
  const char *data;
  size_t length;
};

Text text(const Plan &plan, const void *string) {
  if (plan.is_cpp) {
    const auto &cpp = *static_cast<const std::string *>(string);
    return {cpp.data(), cpp.size()};
  }
  const auto &c = *static_cast<const CString *>(string);
  return {c.data, c.size};
}

struct WideText {
  const void *data;
  size_t length;
};

WideText wide_text(const Plan &plan, const void *string) {
  if (plan.is_cpp) {
    const auto &cpp = *static_cast<const std::u16string *>(string);
    return {cpp.data(), cpp.size()};
  }
  const auto &c = *static_cast<const CWideString *>(string);
  return {c.data, c.size};
}

/// The elements of a sequence: where they are, and their number, which has been checked against the bound.
struct Elements {
  const uint8_t *data;
  size_t count;
};

Elements elements(const Step &step, const void *sequence) {
  const size_t count = step.size_of(sequence);
  check_bound(step, count, step.bound);
  return {count == 0 ? nullptr : static_cast<const uint8_t *>(step.get_const(sequence, 0)), count};
}

/// Counts the bytes that a `Writer` will write.
struct Counter {
  size_t at = 0;

  void align(size_t to) { at = (at + to - 1) & ~(to - 1); }
  void bytes(const void *, size_t count) { at += count; }
  void number(uint32_t) { align(4), at += 4; }
  void byte(uint8_t) { ++at; }
  void wide(const void *, size_t count) { at += 4 * count; }
};

/// Writes into memory of the size that a `Counter` has found.
struct Writer {
  uint8_t *begin;
  size_t at = 0;

  void align(size_t to) {
    for (; (at & (to - 1)) != 0; ++at) begin[at] = 0;
  }
  void bytes(const void *from, size_t count) {
    std::memcpy(begin + at, from, count);
    at += count;
  }
  void number(uint32_t value) {
    align(4);
    bytes(&value, 4);
  }
  void byte(uint8_t value) { begin[at++] = value; }
  void wide(const void *from, size_t count) {
    for (size_t each = 0; each < count; ++each) {
      uint16_t character;
      std::memcpy(&character, static_cast<const uint8_t *>(from) + 2 * each, 2);
      number(character);
    }
  }
};

template <typename Output>
void put_string(Output &output, const Plan &plan, const Step &step, const void *string) {
  const Text characters = text(plan, string);
  check_bound(step, characters.length, step.string_bound);
  output.number(static_cast<uint32_t>(characters.length + 1));
  if (characters.length > 0) output.bytes(characters.data, characters.length);
  output.byte(0);
}

template <typename Output>
void put_wide_string(Output &output, const Plan &plan, const Step &step, const void *string) {
  const WideText characters = wide_text(plan, string);
  check_bound(step, characters.length, step.string_bound);
  output.number(static_cast<uint32_t>(characters.length));
  output.wide(characters.data, characters.length);
}

template <typename Output>
void put(Output &output, const Plan &plan, const void *message);

template <typename Output>
void put_structs(Output &output, const Step &step, const uint8_t *first, size_t count) {
  if (count == 0) return;
  if (step.plan->plain && *step.plan->plain == step.stride) {
    output.align(step.plan->align);
    return output.bytes(first, count * step.stride);
  }
  for (size_t each = 0; each < count; ++each) put(output, *step.plan, first + each * step.stride);
}

template <typename Output>
void put_step(Output &output, const Plan &plan, const Step &step, const void *member) {
  switch (step.kind) {
    case Kind::bytes:
      output.align(step.align);
      return output.bytes(member, step.count);
    case Kind::string:
      return put_string(output, plan, step, member);
    case Kind::wide_string:
      return put_wide_string(output, plan, step, member);
    case Kind::structs:
      return put_structs(output, step, static_cast<const uint8_t *>(member), step.count);
    case Kind::bools: {
      const size_t count = step.size_of(member);
      check_bound(step, count, step.bound);
      output.number(static_cast<uint32_t>(count));
      for (size_t each = 0; each < count; ++each) {
        bool value;
        step.fetch(member, each, &value);
        output.byte(value);
      }
      return;
    }
    default:
      break;
  }
  const Elements all = elements(step, member);
  output.number(static_cast<uint32_t>(all.count));
  switch (step.kind) {
    case Kind::sequence:
      if (all.count == 0) return;
      output.align(step.align);
      return output.bytes(all.data, all.count * step.stride);
    case Kind::struct_sequence:
      return put_structs(output, step, all.data, all.count);
    default:
      for (size_t each = 0; each < all.count; ++each) {
        const uint8_t *string = all.data + each * step.stride;
        if (step.kind == Kind::strings) put_string(output, plan, step, string);
        else put_wide_string(output, plan, step, string);
      }
  }
}

template <typename Output>
void put(Output &output, const Plan &plan, const void *message) {
  for (const Step &step : plan.steps) {
    put_step(output, plan, step, at<uint8_t>(message, step.offset));
  }
}

/// Reads within its bounds, and reads each number once: the process that wrote the message may change it meanwhile.
struct Reader {
  const uint8_t *begin;
  size_t bytes;
  size_t at = 0;

  [[noreturn]] void cut_off(const char *member) const {
    throw std::runtime_error(std::string(member) + " at byte " + std::to_string(at + header_bytes) +
                             ": the message ends inside this member");
  }
  void need(size_t count, const char *member) const {
    if (count > bytes - at) cut_off(member);
  }
  void align(size_t to, const char *member) {
    const size_t next = (at + to - 1) & ~(to - 1);
    if (next > bytes) cut_off(member);
    at = next;
  }
  const uint8_t *take(size_t count, const char *member) {
    need(count, member);
    const uint8_t *taken = begin + at;
    at += count;
    return taken;
  }
  uint32_t number(const char *member) {
    align(4, member);
    uint32_t value;
    std::memcpy(&value, take(4, member), 4);
    return value;
  }
  /// Reads the number of elements of a sequence. Each element takes at least `element_bytes`.
  size_t count(const Step &step, size_t element_bytes) {
    const size_t count = number(step.name);
    if (count > step.bound) too_long(step, count, step.bound);
    if (count > (bytes - at) / element_bytes) cut_off(step.name);
    return count;
  }
};

[[noreturn]] void no_memory(const Step &step) {
  throw std::runtime_error(std::string(step.name) + ": out of memory");
}

void get_string(Reader &input, const Plan &plan, const Step &step, void *string) {
  size_t length = input.number(step.name);
  const auto *data = reinterpret_cast<const char *>(input.take(length, step.name));
  if (length > 0 && data[--length] != 0) {
    throw std::runtime_error(std::string(step.name) + " at byte " + std::to_string(input.at) +
                             ": the string does not end with a zero");
  }
  if (length > step.string_bound) too_long(step, length, step.string_bound);
  if (plan.is_cpp) {
    static_cast<std::string *>(string)->assign(data, length);
  } else if (!rosidl_runtime_c__String__assignn(static_cast<CString *>(string), data, length)) {
    no_memory(step);
  }
}

void get_wide_string(Reader &input, const Plan &plan, const Step &step, void *string) {
  const size_t length = input.number(step.name);
  if (length > step.string_bound) too_long(step, length, step.string_bound);
  if (length > (input.bytes - input.at) / 4) input.cut_off(step.name);
  uint16_t *to;
  if (plan.is_cpp) {
    auto &cpp = *static_cast<std::u16string *>(string);
    cpp.resize(length);
    to = reinterpret_cast<uint16_t *>(cpp.data());
  } else {
    auto *c = static_cast<CWideString *>(string);
    if (!rosidl_runtime_c__U16String__resize(c, length)) no_memory(step);
    to = reinterpret_cast<uint16_t *>(c->data);
  }
  for (size_t each = 0; each < length; ++each) {
    const uint32_t character = input.number(step.name);
    if (character > UINT16_MAX) {
      throw std::runtime_error(std::string(step.name) + " has a character of more than 16 bits");
    }
    to[each] = static_cast<uint16_t>(character);
  }
}

void resize(const Plan &plan, const Step &step, void *sequence, size_t count) {
  if (plan.is_cpp) {
    step.resize_cpp(sequence, count);
  } else if (static_cast<CSequence *>(sequence)->size != count && !step.resize_c(sequence, count)) {
    no_memory(step);
  }
}

template <typename T>
void assign(void *vector, const uint8_t *from, size_t count) {
  auto &to = *static_cast<std::vector<T> *>(vector);
  if (reinterpret_cast<uintptr_t>(from) % alignof(T) == 0) {
    // One pass: a resize would first write zeros.
    to.assign(reinterpret_cast<const T *>(from), reinterpret_cast<const T *>(from) + count);
  } else {
    to.resize(count);
    if (count > 0) std::memcpy(to.data(), from, count * sizeof(T));
  }
}

/// Reads a sequence of numbers. The memory layout of a vector depends only on the size of its elements.
void get_numbers(const Plan &plan, const Step &step, const uint8_t *from, size_t count, void *sequence) {
  if (plan.is_cpp) {
    switch (step.stride) {
      case 1:
        return assign<uint8_t>(sequence, from, count);
      case 2:
        return assign<uint16_t>(sequence, from, count);
      case 4:
        return assign<uint32_t>(sequence, from, count);
      case 8:
        return assign<uint64_t>(sequence, from, count);
      default:
        return assign<long double>(sequence, from, count);
    }
  }
  auto *c = static_cast<CSequence *>(sequence);
  if (c->capacity >= count) {
    c->size = count;
  } else if (!step.resize_c(sequence, count)) {
    no_memory(step);
  }
  if (count > 0) std::memcpy(c->data, from, count * step.stride);
}

void get(Reader &input, const Plan &plan, void *message);

void get_structs(Reader &input, const Step &step, uint8_t *first, size_t count) {
  if (count == 0) return;
  if (step.plan->plain && *step.plan->plain == step.stride) {
    input.align(step.plan->align, step.name);
    if (count > SIZE_MAX / step.stride) input.cut_off(step.name);
    std::memcpy(first, input.take(count * step.stride, step.name), count * step.stride);
    return;
  }
  for (size_t each = 0; each < count; ++each) get(input, *step.plan, first + each * step.stride);
}

void get_step(Reader &input, const Plan &plan, const Step &step, void *member) {
  switch (step.kind) {
    case Kind::bytes:
      input.align(step.align, step.name);
      std::memcpy(member, input.take(step.count, step.name), step.count);
      return;
    case Kind::string:
      return get_string(input, plan, step, member);
    case Kind::wide_string:
      return get_wide_string(input, plan, step, member);
    case Kind::structs:
      return get_structs(input, step, static_cast<uint8_t *>(member), step.count);
    case Kind::sequence: {
      const size_t count = input.count(step, step.stride);
      if (count > 0) input.align(step.align, step.name);
      const uint8_t *from = input.take(count * step.stride, step.name);
      return get_numbers(plan, step, from, count, member);
    }
    case Kind::bools: {
      const size_t count = input.count(step, 1);
      const uint8_t *from = input.take(count, step.name);
      resize(plan, step, member, count);
      for (size_t each = 0; each < count; ++each) {
        const bool value = from[each] != 0;
        step.assign(member, each, &value);
      }
      return;
    }
    case Kind::struct_sequence: {
      const size_t count = input.count(step, step.plan->cdr_bytes_min);
      resize(plan, step, member, count);
      if (count == 0) return;
      return get_structs(input, step, static_cast<uint8_t *>(step.get(member, 0)), count);
    }
    case Kind::strings:
    case Kind::wide_strings: {
      const size_t count = input.count(step, 4);
      resize(plan, step, member, count);
      for (size_t each = 0; each < count; ++each) {
        void *string = step.get(member, each);
        if (step.kind == Kind::strings) get_string(input, plan, step, string);
        else get_wide_string(input, plan, step, string);
      }
    }
  }
}

void get(Reader &input, const Plan &plan, void *message) {
  for (const Step &step : plan.steps) {
    get_step(input, plan, step, at<uint8_t>(message, step.offset));
  }
}

constexpr size_t request_bytes = sizeof(RequestHeader);
static_assert(request_bytes == 16, "the same size as in rmw_cyclonedds");

}  // namespace

size_t encoded_bytes(const Plan &plan, const void *message, bool has_request_header) {
  const size_t before = has_request_header ? request_bytes : 0;
  if (plan.plain_message) return header_bytes + before + *plan.plain_message;
  Counter counter{before};
  put(counter, plan, message);
  return header_bytes + counter.at;
}

void encode(const Plan &plan, const void *message, uint8_t *to, size_t bytes,
            const RequestHeader *header) {
  put_header(to);
  Writer writer{to + header_bytes};
  if (header != nullptr) writer.bytes(header, request_bytes);
  if (plan.plain_message) {
    writer.bytes(message, *plan.plain_message);
  } else {
    put(writer, plan, message);
  }
  if (header_bytes + writer.at != bytes) throw std::runtime_error("the message has changed during encoding");
}

void decode(const Plan &plan, const uint8_t *from, size_t bytes, void *message, RequestHeader *header) {
  if (const char *error = header_error(from, bytes)) throw std::runtime_error(error);
  Reader reader{from + header_bytes, bytes - header_bytes};
  if (header != nullptr) std::memcpy(header, reader.take(request_bytes, "header"), request_bytes);
  if (plan.plain_message) {
    const size_t all = *plan.plain_message;
    std::memcpy(message, reader.take(all, "the message"), all);
  } else {
    get(reader, plan, message);
  }
}

const char *header_error(const uint8_t *from, size_t bytes) {
  if (bytes < header_bytes) return "the message has no header";
  if (from[0] != 0 || from[1] > 1) return "the message is not in plain CDR of version 1 (XCDR1)";
  if (from[1] != 1) return "the message comes from a big-endian machine";
  return nullptr;
}

void put_header(uint8_t *to) {
  const uint8_t header[header_bytes] = {0, 1, 0, 0};
  std::memcpy(to, header, header_bytes);
}

RequestHeader request_header(const uint8_t *from, size_t bytes) {
  RequestHeader header{};
  if (header_error(from, bytes) == nullptr && bytes >= header_bytes + request_bytes) {
    std::memcpy(&header, from + header_bytes, request_bytes);
  }
  return header;
}

}  // namespace rmw_myelin::cdr
