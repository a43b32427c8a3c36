// Types of topics and services, made from rosidl's introspection.
#pragma once

#include <memory>
#include <string>

#include "plan.hpp"
#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/service_type_support_struct.h"
#if __has_include("rosidl_runtime_c/type_hash.h")
#include "rosidl_runtime_c/type_hash.h"
#define RMW_MYELIN_HAS_TYPE_HASH 1
#endif

namespace rmw_myelin {

struct MessageType {
  /// Name in DDS and in Myelin: `std_msgs::msg::dds_::String_`.
  std::string name;
  std::shared_ptr<const Plan> plan;
  /// `RIHS01_…`, or empty if the type has no hash.
  std::string hash;
  /// The type support of the program, and of a request or response that of its service, too. They outlive the endpoints.
  const rosidl_message_type_support_t *support = nullptr;
  const rosidl_service_type_support_t *service = nullptr;
  bool is_response = false;

  /// Returns the type's .msg file, or its half of the .srv file, joined with the .msg files of its nested types, in
  /// MCAP's form ("ros2msg"). Returns an empty text if the type support does not have them.
  std::string definition() const;
};

struct ServiceType {
  MessageType request;
  MessageType response;
};

/// Throw a std::runtime_error if the type has no introspection, or one with an unknown member.
MessageType message_type(const rosidl_message_type_support_t &type_support);
ServiceType service_type(const rosidl_service_type_support_t &type_support);

}  // namespace rmw_myelin
