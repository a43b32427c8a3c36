// Tests through rmw.h of the graph: what nodes of one context and of two see of each other.
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "rmw/get_node_info_and_types.h"
#include "rmw/get_topic_endpoint_info.h"
#include "rmw/get_topic_names_and_types.h"
#include "rmw/names_and_types.h"
#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "rosidl_typesupport_cpp/service_type_support.hpp"
#include "side.hpp"
#include "test_msgs/msg/basic_types.hpp"
#include "test_msgs/srv/basic_types.hpp"

namespace {

using namespace std::chrono_literals;

rcutils_allocator_t allocator = rcutils_get_default_allocator();

/// The limit is a watchdog: no step takes nearly as long.
void wait_until(const char *what, const std::function<bool()> &holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!holds()) {
    check(std::chrono::steady_clock::now() < end, what);
    std::this_thread::yield();
  }
}

rmw_publisher_t *publisher(const rmw_node_t *node, const char *topic, const rmw_qos_profile_t &qos) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<test_msgs::msg::BasicTypes>();
  const auto options = rmw_get_default_publisher_options();
  rmw_publisher_t *made = rmw_create_publisher(node, type, topic, &qos, &options);
  CHECK(made != nullptr);
  return made;
}

/// All nodes, as `/name_space/name,` in the order of the graph.
std::string nodes(const Side &side) {
  rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t name_spaces = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t enclaves = rcutils_get_zero_initialized_string_array();
  OK(rmw_get_node_names_with_enclaves(side.node, &names, &name_spaces, &enclaves));
  std::string all;
  for (size_t at = 0; at < names.size; ++at) {
    CHECK(std::string(enclaves.data[at]) == "/");
    all += std::string(name_spaces.data[at]) + " " + names.data[at] + ",";
  }
  for (rcutils_string_array_t *each : {&names, &name_spaces, &enclaves}) {
    CHECK(rcutils_string_array_fini(each) == RCUTILS_RET_OK);
  }
  return all;
}

size_t publishers(const Side &side, const char *topic) {
  size_t count = 0;
  OK(rmw_count_publishers(side.node, topic, &count));
  return count;
}

/// How many topics a node publishes; -1 if there is no such node.
int topics_of(const Side &side, const char *name) {
  rmw_names_and_types_t found = rmw_get_zero_initialized_names_and_types();
  const rmw_ret_t result =
      rmw_get_publisher_names_and_types_by_node(side.node, &allocator, name, "/", false, &found);
  if (result == RMW_RET_NODE_NAME_NON_EXISTENT) {
    rmw_reset_error();
    return -1;
  }
  CHECK(result == RMW_RET_OK);
  const int count = static_cast<int>(found.names.size);
  OK(rmw_names_and_types_fini(&found));
  return count;
}

/// Two nodes of one name are two nodes, and what they publish is found under their name.
void two_nodes_have_one_name(Side &side) {
  rmw_node_t *other = rmw_create_node(&side.context, "watcher", "/");
  CHECK(other != nullptr);
  CHECK(nodes(side) == "/ watcher,/ watcher,");
  rmw_publisher_t *first = publisher(side.node, "/first", rmw_qos_profile_default);
  rmw_publisher_t *second = publisher(other, "/second", rmw_qos_profile_default);
  CHECK(topics_of(side, "watcher") == 2);
  OK(rmw_destroy_publisher(other, second));
  OK(rmw_destroy_node(other));
  CHECK(nodes(side) == "/ watcher,");
  CHECK(topics_of(side, "watcher") == 1);
  OK(rmw_destroy_publisher(side.node, first));
}

/// rclpy forgets to destroy an endpoint of each node.
void a_node_goes_with_its_endpoints(Side &side) {
  rmw_node_t *node = rmw_create_node(&side.context, "short", "/");
  rmw_publisher_t *left = publisher(node, "/left", rmw_qos_profile_default);
  CHECK(publishers(side, "/left") == 1 && topics_of(side, "short") == 1);
  OK(rmw_destroy_node(node));
  CHECK(publishers(side, "/left") == 0 && topics_of(side, "short") == -1);
  OK(rmw_destroy_publisher(side.node, left));
}

/// The settings of the user, and not those of the library's queue.
void settings_are_those_of_the_user(Side &side, Side &other) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.depth = 3;
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  qos.deadline = {2, 0};
  qos.lifespan = {3, 500};
  qos.liveliness = RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC;
  qos.liveliness_lease_duration = {4, 0};
  rmw_publisher_t *made = publisher(other.node, "/settings", qos);
  wait_until("the publisher is in the graph", [&] { return publishers(side, "/settings") == 1; });
  rmw_topic_endpoint_info_array_t infos = rmw_get_zero_initialized_topic_endpoint_info_array();
  OK(rmw_get_publishers_info_by_topic(side.node, &allocator, "/settings", false, &infos));
  CHECK(infos.size == 1);
  const rmw_topic_endpoint_info_t &info = infos.info_array[0];
  CHECK(std::string(info.node_name) == "other" && std::string(info.node_namespace) == "/");
  CHECK(std::string(info.topic_type) == "test_msgs/msg/BasicTypes");
  const rmw_qos_profile_t &found = info.qos_profile;
  CHECK(found.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST && found.depth == 3);
  CHECK(found.reliability == qos.reliability && found.durability == qos.durability);
  CHECK(found.liveliness == qos.liveliness && found.liveliness_lease_duration.sec == 4);
  CHECK(found.deadline.sec == 2 && found.lifespan.sec == 3 && found.lifespan.nsec == 500);
  OK(rmw_topic_endpoint_info_array_fini(&infos, &allocator));
  OK(rmw_destroy_publisher(other.node, made));
  wait_until("it has left the graph", [&] { return publishers(side, "/settings") == 0; });
}

/// The library's topics of a client have names of their own, which are not those of the graph.
void the_longest_service_is_found(Side &side) {
  const std::string name = "/" + std::string(246, 's');
  const auto *type = rosidl_typesupport_cpp::get_service_type_support_handle<test_msgs::srv::BasicTypes>();
  rmw_service_t *service = rmw_create_service(side.node, type, name.c_str(), &rmw_qos_profile_services_default);
  rmw_client_t *client = rmw_create_client(side.node, type, name.c_str(), &rmw_qos_profile_services_default);
  CHECK(service != nullptr && client != nullptr);
  rmw_names_and_types_t found = rmw_get_zero_initialized_names_and_types();
  OK(rmw_get_client_names_and_types_by_node(side.node, &allocator, "watcher", "/", &found));
  CHECK(found.names.size == 1 && name == found.names.data[0]);
  OK(rmw_names_and_types_fini(&found));
  OK(rmw_get_service_names_and_types_by_node(side.node, &allocator, "watcher", "/", &found));
  CHECK(found.names.size == 1 && name == found.names.data[0]);
  OK(rmw_names_and_types_fini(&found));
  // Nothing of rmw_myelin itself.
  OK(rmw_get_topic_names_and_types(side.node, &allocator, true, &found));
  CHECK(found.names.size == 2);
  OK(rmw_names_and_types_fini(&found));
  OK(rmw_destroy_client(side.node, client));
  OK(rmw_destroy_service(side.node, service));
}

}  // namespace

int main() {
  Side side("watcher");
  two_nodes_have_one_name(side);
  a_node_goes_with_its_endpoints(side);
  the_longest_service_is_found(side);
  {
    Side other("other");
    wait_until("the other node is in the graph", [&] { return topics_of(side, "other") == 0; });
    settings_are_those_of_the_user(side, other);
  }
  wait_until("the other node has left", [&] { return topics_of(side, "other") == -1; });
  CHECK(nodes(side) == "/ watcher,");
  std::puts("passed");
}
