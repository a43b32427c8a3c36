// A plan describes a type as a list of steps. It is made once from rosidl's introspection. Encoding and decoding walk
// the steps, not the introspection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace rmw_myelin {

struct Plan;

/// How a member lies in memory and in CDR.
enum class Kind : uint8_t {
  bytes,            // `count` bytes, the same in memory and in CDR, aligned to `align`
  string,           // a string
  wide_string,      // a string of 16-bit characters; in CDR 32 bits each, as in all RMWs
  structs,          // `count` structs of `plan`, `stride` bytes apart
  sequence,         // a sequence of numbers of `stride` bytes
  bools,            // a std::vector<bool>, through rosidl's functions
  strings,          // a sequence of strings, through rosidl's functions
  wide_strings,     // a sequence of wide strings, through rosidl's functions
  struct_sequence,  // a sequence of structs of `plan`
};

/// A step handles one member, or neighbouring members that are copied together.
struct Step {
  Kind kind;
  uint8_t align = 1;       // alignment of its first number in CDR
  size_t offset = 0;       // bytes from the beginning of the struct
  size_t count = 1;        // number of bytes, or of an array's elements
  size_t stride = 0;       // bytes from one element to the next
  size_t bound = SIZE_MAX;         // most elements of a sequence
  size_t string_bound = SIZE_MAX;  // most characters of a string
  std::shared_ptr<const Plan> plan;
  const char *name = "";  // of the member, for error messages
  // Functions of a sequence, as rosidl generates them.
  size_t (*size_of)(const void *) = nullptr;
  const void *(*get_const)(const void *, size_t) = nullptr;
  void *(*get)(void *, size_t) = nullptr;
  void (*fetch)(const void *, size_t, void *) = nullptr;
  void (*assign)(void *, size_t, const void *) = nullptr;
  bool (*resize_c)(void *, size_t) = nullptr;
  void (*resize_cpp)(void *, size_t) = nullptr;
};

/// The plan of a struct.
struct Plan {
  std::vector<Step> steps;
  size_t bytes = 0;      // sizeof
  size_t cdr_bytes_min = 0;  // least size in CDR, without padding
  bool is_cpp = false;   // has strings and vectors of C++, not of C
  bool may_be_large = false;  // over 4 KiB, or has a sequence without a bound
  /// Alignment of the first number in CDR. A nested struct begins there.
  size_t align = 1;
  /// The size, if CDR and memory are equal wherever the struct begins.
  std::optional<size_t> plain;
  /// The size, if CDR and memory are equal at a multiple of 8, where a whole message begins.
  std::optional<size_t> plain_message;
};

/// Makes the plan from the MessageMembers of rosidl_typesupport_introspection_cpp or _c. Throws a std::runtime_error
/// for an unknown type.
std::shared_ptr<const Plan> make_plan(const void *members, bool is_cpp);

}  // namespace rmw_myelin
