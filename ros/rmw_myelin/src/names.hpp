// Names of ROS 2 in DDS and in Myelin (design.ros2.org, Topic and Service name mapping to DDS).
#pragma once

#include <string>

#include "rmw/types.h"

namespace rmw_myelin {

/// `/chatter` becomes `rt/chatter`, or stays the same if `qos` avoids the namespace conventions.
std::string topic_name(const std::string &ros_name, const rmw_qos_profile_t &qos);

/// The topics of `/add` are `rq/addRequest` and `rr/addReply`.
std::string request_name(const std::string &ros_name, const rmw_qos_profile_t &qos);
std::string reply_name(const std::string &ros_name, const rmw_qos_profile_t &qos);

/// `std_msgs::msg` (in C: `std_msgs__msg`) and `String` become `std_msgs::msg::dds_::String_`.
std::string type_name(const std::string &name_space, const std::string &name);

/// Return the ROS 2 name of a topic in DDS, or an empty string if it is of another kind. A service has two topics, one
/// for requests and one for replies.
std::string ros_topic(const std::string &dds_topic);
std::string ros_service(const std::string &dds_topic);
std::string ros_service_of_request(const std::string &dds_topic);
std::string ros_service_of_reply(const std::string &dds_topic);

/// Returns the ROS 2 name of a type in DDS. A type that is not of ROS 2 keeps its name.
std::string ros_type(const std::string &dds_type);
/// Returns the service of a request's or a reply's type, or an empty string.
std::string ros_service_type(const std::string &dds_type);

/// Checks the full name of a topic or a service. Sets the error and returns false if it is invalid.
bool check_name(const char *name, const rmw_qos_profile_t &qos);

}  // namespace rmw_myelin
