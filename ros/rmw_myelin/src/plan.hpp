// A type as a list of steps, made once of what rosidl's introspection tells: messages are written and read
// by walking the list, not the introspection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace rmw_myelin {

struct Plan;

/// How a member lies in memory, and what it is in CDR.
enum class Kind : uint8_t {
  bytes,            // `count` bytes that are the same in memory and in CDR, from `align` on
  string,           // a string
  wide_string,      // a string of 16-bit characters; 32 bits each in CDR, as in every middleware of ROS 2
  structs,          // `count` structs of `plan`, `stride` apart
  sequence,         // a sequence of numbers of `stride` bytes
  bools,            // a std::vector<bool>, by its functions
  strings,          // a sequence of strings, by their functions
  wide_strings,     //
  struct_sequence,  // a sequence of structs of `plan`
};

/// One step: a member, or neighbours that are copied together.
struct Step {
  Kind kind;
  uint8_t align = 1;       // of the first number in CDR
  size_t offset = 0;       // in the struct
  size_t count = 1;        // bytes, or elements of an array
  size_t stride = 0;       // bytes of an element
  size_t bound = SIZE_MAX;         // of a sequence's elements
  size_t string_bound = SIZE_MAX;  // of a string's characters
  std::shared_ptr<const Plan> plan;
  const char *name = "";  // of the member, for messages
  // Of a sequence, as rosidl generates them.
  size_t (*size_of)(const void *) = nullptr;
  const void *(*get_const)(const void *, size_t) = nullptr;
  void *(*get)(void *, size_t) = nullptr;
  void (*fetch)(const void *, size_t, void *) = nullptr;
  void (*assign)(void *, size_t, const void *) = nullptr;
  bool (*resize_c)(void *, size_t) = nullptr;
  void (*resize_cpp)(void *, size_t) = nullptr;
};

/// A struct.
struct Plan {
  std::vector<Step> steps;
  size_t bytes = 0;      // sizeof
  size_t cdr_bytes_min = 0;  // it has no less in CDR, its padding not counted
  bool is_cpp = false;   // C++'s strings and vectors, or C's
  bool may_be_large = false;  // it has a sequence without a bound, or many bytes
  /// The alignment of its first number in CDR: where it begins as a part of something.
  size_t align = 1;
  /// Its CDR is its memory, wherever it begins: so many bytes.
  std::optional<size_t> plain;
  /// Its CDR is its memory where that begins at a multiple of 8, as a whole message does: so many bytes.
  std::optional<size_t> plain_message;
};

/// The plan of what the MessageMembers of rosidl_typesupport_introspection_cpp, or _c, describe. Throws a
/// std::runtime_error about what it does not know.
std::shared_ptr<const Plan> make_plan(const void *members, bool is_cpp);

}  // namespace rmw_myelin
