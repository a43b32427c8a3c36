#include "names.hpp"

#include "rmw/error_handling.h"
#include "rmw/validate_full_topic_name.h"

namespace rmw_myelin {
namespace {

std::string with(const char *prefix, const std::string &name, const char *suffix,
                 const rmw_qos_profile_t &qos) {
  return (qos.avoid_ros_namespace_conventions ? "" : prefix) + name + suffix;
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
