#include "type_support.hpp"

#include <cstring>
#include <sstream>
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

#ifdef RMW_MYELIN_HAS_TYPE_HASH
namespace {

/// Returns the files that a type was made from, its own first, or nullptr.
template <typename TypeSupport>
auto sources_of(const TypeSupport *type_support) {
  const bool has_them = type_support != nullptr && type_support->get_type_description_sources_func != nullptr;
  return has_them ? type_support->get_type_description_sources_func(type_support) : nullptr;
}

/// rosidl counts the zero at the end of some texts.
std::string text_of(const rosidl_runtime_c__String &it) { return std::string(it.data, strnlen(it.data, it.size)); }

/// Returns a half of a .srv file, which the line `---` divides.
std::string half_of(const std::string &file, bool is_second) {
  std::istringstream lines(file);
  std::string line, half;
  bool is_in_second = false;
  while (std::getline(lines, line)) {
    if (line.rfind("---", 0) == 0) {
      is_in_second = true;
    } else if (is_in_second == is_second) {
      half += line + "\n";
    }
  }
  return half;
}

}  // namespace
#endif

std::string MessageType::definition() const {
  std::string all;
#ifdef RMW_MYELIN_HAS_TYPE_HASH
  const auto *sources = sources_of(support);
  if (sources == nullptr) return all;
  for (size_t index = 0; index < sources->size; index++) {
    const auto &source = sources->data[index];
    if (index == 0 && service != nullptr) {
      const auto *of_service = sources_of(service);
      if (of_service == nullptr || of_service->size == 0) return "";
      if (text_of(of_service->data[0].encoding) != "srv") return "";
      all = half_of(text_of(of_service->data[0].raw_file_contents), is_response);
      continue;
    }
    // The parts of actions have no file of their own.
    if (text_of(source.encoding) != "msg") return "";
    if (index > 0) {
      // `package/msg/Type`; in the joined definition `package/Type`.
      const std::string type = text_of(source.type_name);
      const size_t first = type.find('/'), last = type.rfind('/');
      if (first == std::string::npos) return "";
      all += "\n" + std::string(80, '=') + "\nMSG: " + type.substr(0, first) + type.substr(last) + "\n";
    }
    all += text_of(source.raw_file_contents);
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
  type.request.support = type_support.request_typesupport;
  type.response.support = type_support.response_typesupport;
#endif
  type.request.service = type.response.service = &type_support;
  type.response.is_response = true;
  return type;
}

}  // namespace rmw_myelin
