// Tests all kinds of messages. Each of two RMWs reads what the other one has serialised. A message that is cut off or
// altered is refused, or read within its bounds.
//     serialization <librmw_myelin.so> <another RMW's library>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rcutils/allocator.h"
#include "rcutils/error_handling.h"
#include "rmw/serialized_message.h"
#include "rmw/types.h"
#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "test_msgs/message_fixtures.hpp"

namespace {

struct Rmw {
  explicit Rmw(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
    serialize = reinterpret_cast<decltype(serialize)>(dlsym(library, "rmw_serialize"));
    deserialize = reinterpret_cast<decltype(deserialize)>(dlsym(library, "rmw_deserialize"));
  }

  rmw_ret_t (*serialize)(const void *, const rosidl_message_type_support_t *, rmw_serialized_message_t *);
  rmw_ret_t (*deserialize)(const rmw_serialized_message_t *, const rosidl_message_type_support_t *, void *);
};

int failures = 0;
size_t refused = 0;
size_t read = 0;

void expect(bool holds, const char *what, const char *name) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s: %s\n", name, what, rcutils_get_error_string().str);
  rcutils_reset_error();
  ++failures;
}

rmw_serialized_message_t serialized() {
  rmw_serialized_message_t made = rmw_get_zero_initialized_serialized_message();
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  if (rmw_serialized_message_init(&made, 0, &allocator) != RMW_RET_OK) std::abort();
  return made;
}

template <typename Message>
void read_by_other(const Rmw &from, const Rmw &to, const Message &message, const char *name) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  rmw_serialized_message_t bytes = serialized();
  expect(from.serialize(&message, type, &bytes) == RMW_RET_OK, "cannot be serialised", name);
  Message back;
  expect(to.deserialize(&bytes, type, &back) == RMW_RET_OK, "cannot be read", name);
  expect(back == message, "differs after reading", name);
  // A second time, into a message that is not empty.
  expect(to.deserialize(&bytes, type, &back) == RMW_RET_OK && back == message, "cannot be read again", name);
  (void)rmw_serialized_message_fini(&bytes);
}

/// Reads a copy of exactly this size, so that a sanitizer notices a read beyond it.
template <typename Message>
void try_to_read(const Rmw &rmw, const std::vector<uint8_t> &bytes) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  std::vector<uint8_t> exact(bytes);
  exact.shrink_to_fit();
  rmw_serialized_message_t given = serialized();
  rmw_serialized_message_t own = given;
  given.buffer = exact.data();
  given.buffer_length = given.buffer_capacity = exact.size();
  Message message;
  if (rmw.deserialize(&given, type, &message) == RMW_RET_OK) {
    ++read;
  } else {
    ++refused;
    rcutils_reset_error();
  }
  (void)rmw_serialized_message_fini(&own);
}

template <typename Message>
void read_damaged(const Rmw &rmw, const Message &message) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  rmw_serialized_message_t bytes = serialized();
  if (rmw.serialize(&message, type, &bytes) != RMW_RET_OK) std::abort();
  const std::vector<uint8_t> whole(bytes.buffer, bytes.buffer + bytes.buffer_length);
  (void)rmw_serialized_message_fini(&bytes);
  for (size_t length = 0; length < whole.size(); ++length) {
    try_to_read<Message>(rmw, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  uint64_t random = whole.size();
  for (int round = 0; round < 400; ++round) {
    std::vector<uint8_t> altered(whole);
    for (int change = 0; change < 3; ++change) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      altered[(random >> 33) % altered.size()] = static_cast<uint8_t>(random >> 24);
    }
    try_to_read<Message>(rmw, altered);
  }
}

template <typename Messages>
void all(const Rmw &own, const Rmw &other, const Messages &messages, const char *name) {
  for (const auto &message : messages) {
    read_by_other(own, other, *message, name);
    read_by_other(other, own, *message, name);
    read_damaged(own, *message);
  }
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 3) return 2;
  const Rmw own(arguments[1]), other(arguments[2]);
  all(own, other, get_messages_arrays(), "Arrays");
  all(own, other, get_messages_basic_types(), "BasicTypes");
  all(own, other, get_messages_bounded_plain_sequences(), "BoundedPlainSequences");
  all(own, other, get_messages_bounded_sequences(), "BoundedSequences");
  all(own, other, get_messages_builtins(), "Builtins");
  all(own, other, get_messages_constants(), "Constants");
  all(own, other, get_messages_defaults(), "Defaults");
  all(own, other, get_messages_empty(), "Empty");
  all(own, other, get_messages_multi_nested(), "MultiNested");
  all(own, other, get_messages_nested(), "Nested");
  all(own, other, get_messages_strings(), "Strings");
  all(own, other, get_messages_unbounded_sequences(), "UnboundedSequences");
  all(own, other, get_messages_wstrings(), "WStrings");
  expect(refused > 1000 && read > 1000, "too few are refused or too few are read", "altered messages");
  std::printf("%d failures; altered messages: %zu refused, %zu read\n", failures, refused, read);
  return failures == 0 ? 0 : 1;
}
