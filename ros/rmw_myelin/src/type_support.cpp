#include "type_support.hpp"

#include <cstring>
#include <stdexcept>

#include "names.hpp"
#include "rcutils/allocator.h"
#include "rcutils/error_handling.h"
#include "rosidl_typesupport_introspection_c/identifier.h"
#include "rosidl_typesupport_introspection_c/message_introspection.h"
#include "rosidl_typesupport_introspection_c/service_introspection.h"
#include "rosidl_typesupport_introspection_cpp/identifier.hpp"
#include "rosidl_typesupport_introspection_cpp/message_introspection.hpp"
#include "rosidl_typesupport_introspection_cpp/service_introspection.hpp"

namespace rmw_myelin {
namespace {

const char *c_identifier() { return rosidl_typesupport_introspection_c__identifier; }
const char *cpp_identifier() { return rosidl_typesupport_introspection_cpp::typesupport_identifier; }

/// Returns the introspection of a type, of C or of C++. `get` is rosidl's function for messages or for services.
template <typename TypeSupport>
const TypeSupport &introspection(const TypeSupport &type_support,
                                 const TypeSupport *(*get)(const TypeSupport *, const char *)) {
  for (const char *identifier : {c_identifier(), cpp_identifier()}) {
    if (const TypeSupport *found = get(&type_support, identifier)) return *found;
    rcutils_reset_error();
  }
  throw std::runtime_error(
      std::string("the type has no introspection, only ") + type_support.typesupport_identifier +
      "; build its package with rosidl_typesupport_introspection_c and _cpp");
}

template <typename Members>
MessageType of_members(const Members &members, bool is_cpp) {
  MessageType type;
  type.name = type_name(members.message_namespace_, members.message_name_);
  type.plan = make_plan(&members, is_cpp);
  return type;
}

/// Returns a type's hash as text, or an empty string.
template <typename TypeSupport>
std::string hash_of(const TypeSupport *type_support) {
#ifdef RMW_MYELIN_HAS_TYPE_HASH
  if (type_support == nullptr || type_support->get_type_hash_func == nullptr) return "";
  const rosidl_type_hash_t *hash = type_support->get_type_hash_func(type_support);
  if (hash == nullptr) return "";
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  char *text = nullptr;
  if (rosidl_stringify_type_hash(hash, allocator, &text) != RCUTILS_RET_OK) return "";
  std::string result(text);
  allocator.deallocate(text, allocator.state);
  return result;
#else
  (void)type_support;
  return "";
#endif
}

template <typename Members>
ServiceType of_service(const void *data, bool is_cpp) {
  const auto &members = *static_cast<const Members *>(data);
  return {of_members(*members.request_members_, is_cpp), of_members(*members.response_members_, is_cpp)};
}

}  // namespace

MessageType message_type(const rosidl_message_type_support_t &type_support) {
  const auto &found = introspection(type_support, get_message_typesupport_handle);
  MessageType type;
  if (std::strcmp(found.typesupport_identifier, c_identifier()) == 0) {
    using Members = rosidl_typesupport_introspection_c__MessageMembers;
    type = of_members(*static_cast<const Members *>(found.data), false);
  } else {
    using Members = rosidl_typesupport_introspection_cpp::MessageMembers;
    type = of_members(*static_cast<const Members *>(found.data), true);
  }
  type.hash = hash_of(&type_support);
  type.support = &type_support;
  return type;
}

std::string MessageType::definition() const {
  std::string all;
#ifdef RMW_MYELIN_HAS_TYPE_HASH
  // rosidl counts the zero at the end of some of these texts.
  const auto text = [](const rosidl_runtime_c__String &it) {
    return std::string(it.data, strnlen(it.data, it.size));
  };
  if (support == nullptr || support->get_type_description_sources_func == nullptr) return all;
  const auto *sources = support->get_type_description_sources_func(support);
  if (sources == nullptr) return all;
  for (size_t index = 0; index < sources->size; index++) {
    const auto &source = sources->data[index];
    // The parts of services and actions have no file of their own.
    if (text(source.encoding) != "msg") return "";
    if (index > 0) {
      // `package/msg/Type`; in the joined definition `package/Type`.
      const std::string type = text(source.type_name);
      const size_t first = type.find('/'), last = type.rfind('/');
      if (first == std::string::npos) return "";
      all += "\n" + std::string(80, '=') + "\nMSG: " + type.substr(0, first) + type.substr(last) + "\n";
    }
    all += text(source.raw_file_contents);
  }
#endif
  return all;
}

ServiceType service_type(const rosidl_service_type_support_t &type_support) {
  const auto &found = introspection(type_support, get_service_typesupport_handle);
  ServiceType type;
  if (std::strcmp(found.typesupport_identifier, c_identifier()) == 0) {
    type = of_service<rosidl_typesupport_introspection_c__ServiceMembers>(found.data, false);
  } else {
    type = of_service<rosidl_typesupport_introspection_cpp::ServiceMembers>(found.data, true);
  }
#ifdef RMW_MYELIN_HAS_TYPE_HASH
  type.request.hash = hash_of(type_support.request_typesupport);
  type.response.hash = hash_of(type_support.response_typesupport);
#endif
  return type;
}

}  // namespace rmw_myelin
