#include "names.hpp"

#include "rmw/error_handling.h"
#include "rmw/validate_full_topic_name.h"

namespace rmw_myelin {
namespace {

std::string with(const char *prefix, const std::string &name, const char *suffix,
                 const rmw_qos_profile_t &qos) {
  return (qos.avoid_ros_namespace_conventions ? "" : prefix) + name + suffix;
}

/// Returns the text between a prefix with a slash and a suffix, or an empty string if one is missing.
std::string between(const std::string &prefix, const std::string &name, const std::string &suffix) {
  const size_t bytes = prefix.size() + suffix.size();
  if (name.size() <= bytes || name.compare(0, prefix.size() + 1, prefix + "/") != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
    return "";
  }
  return name.substr(prefix.size(), name.size() - bytes);
}

/// Returns a type's ROS 2 name without the suffix, or an empty string if it is not a type of ROS 2.
std::string without_suffix(const std::string &dds_type, const std::string &suffix) {
  const std::string mark = "dds_::";
  const size_t at = dds_type.find(mark);
  if (at == std::string::npos || dds_type.size() < at + mark.size() + suffix.size() ||
      dds_type.compare(dds_type.size() - suffix.size(), suffix.size(), suffix) != 0) {
    return "";
  }
  std::string type = dds_type.substr(0, at);
  for (size_t colons = 0; (colons = type.find("::", colons)) != std::string::npos;) {
    type.replace(colons, 2, "/");
  }
  const size_t begin = at + mark.size();
  return type + dds_type.substr(begin, dds_type.size() - suffix.size() - begin);
}

}  // namespace

std::string topic_name(const std::string &ros_name, const rmw_qos_profile_t &qos) {
  return with("rt", ros_name, "", qos);
}

std::string request_name(const std::string &ros_name, const rmw_qos_profile_t &qos) {
  return with("rq", ros_name, "Request", qos);
}

std::string reply_name(const std::string &ros_name, const rmw_qos_profile_t &qos) {
  return with("rr", ros_name, "Reply", qos);
}

std::string type_name(const std::string &name_space, const std::string &name) {
  std::string colons = name_space;
  for (size_t at = 0; (at = colons.find("__", at)) != std::string::npos; at += 2) {
    colons.replace(at, 2, "::");
  }
  return (colons.empty() ? "" : colons + "::") + "dds_::" + name + "_";
}

std::string ros_topic(const std::string &dds_topic) { return between("rt", dds_topic, ""); }

std::string ros_service_of_request(const std::string &dds_topic) {
  return between("rq", dds_topic, "Request");
}

std::string ros_service_of_reply(const std::string &dds_topic) {
  return between("rr", dds_topic, "Reply");
}

std::string ros_service(const std::string &dds_topic) {
  const std::string service = ros_service_of_reply(dds_topic);
  return service.empty() ? ros_service_of_request(dds_topic) : service;
}

std::string ros_type(const std::string &dds_type) {
  const std::string type = without_suffix(dds_type, "_");
  return type.empty() ? dds_type : type;
}

std::string ros_service_type(const std::string &dds_type) {
  const std::string type = without_suffix(dds_type, "_Response_");
  return type.empty() ? without_suffix(dds_type, "_Request_") : type;
}

bool check_name(const char *name, const rmw_qos_profile_t &qos) {
  if (*name == 0) {
    RMW_SET_ERROR_MSG("the name is empty");
    return false;
  }
  if (qos.avoid_ros_namespace_conventions) return true;
  int result = RMW_TOPIC_VALID;
  if (rmw_validate_full_topic_name(name, &result, nullptr) != RMW_RET_OK) return false;
  if (result == RMW_TOPIC_VALID) return true;
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("invalid topic name: %s",
                                       rmw_full_topic_name_validation_result_string(result));
  return false;
}

}  // namespace rmw_myelin
