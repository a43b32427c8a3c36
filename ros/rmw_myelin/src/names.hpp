// Names of ROS 2 as they are in DDS and in Myelin (design.ros2.org, Topic and Service name mapping to DDS).
#pragma once

#include <string>

#include "rmw/types.h"

namespace rmw_myelin {

/// `/chatter` is `rt/chatter`; as it is if the namespace conventions are to be avoided.
std::string topic_name(const std::string &ros_name, const rmw_qos_profile_t &qos);

/// `/add` is `rq/addRequest` on the way there and `rr/addReply` on the way back.
std::string request_name(const std::string &ros_name, const rmw_qos_profile_t &qos);
std::string reply_name(const std::string &ros_name, const rmw_qos_profile_t &qos);

/// `std_msgs::msg` (of C: `std_msgs__msg`) and `String` are `std_msgs::msg::dds_::String_`.
std::string type_name(const std::string &name_space, const std::string &name);

/// The other way: what a topic of DDS is in ROS 2, or empty if it is none. A service has two topics: its
/// requests' and its replies'.
std::string ros_topic(const std::string &dds_topic);
std::string ros_service(const std::string &dds_topic);
std::string ros_service_of_request(const std::string &dds_topic);
std::string ros_service_of_reply(const std::string &dds_topic);

/// What a type of DDS is in ROS 2, or as it is if it is none.
std::string ros_type(const std::string &dds_type);
/// The service of a request's or a reply's type.
std::string ros_service_type(const std::string &dds_type);

/// Whether a topic's or service's full name is one. Sets the error if not.
bool check_name(const char *name, const rmw_qos_profile_t &qos);

}  // namespace rmw_myelin
