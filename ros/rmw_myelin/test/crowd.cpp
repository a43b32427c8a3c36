// One process of many: a context with a node and a publisher, and nothing else.
//   crowd NUMBER PROCESSES
// It prints `ready` when it has them. After a line on standard input it waits until it sees a node and a publisher of
// each process, and prints `all LOOKS US MIB`: how often it has looked at the graph, the CPU time of a look, and the
// memory of the process. It ends at the end of its input.
#include <time.h>

#include <fstream>
#include <string>

#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "side.hpp"
#include "test_msgs/msg/basic_types.hpp"

namespace {

/// CPU time of this thread, in microseconds.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

/// Memory that belongs to no file, in MiB.
double memory_mib() {
  std::ifstream status("/proc/self/status");
  double kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0 || line.rfind("RssShmem:", 0) == 0) {
      kib += std::stod(line.substr(line.find(':') + 1));
    }
  }
  return kib / 1024;
}

size_t nodes(const Side &side) {
  rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t name_spaces = rcutils_get_zero_initialized_string_array();
  OK(rmw_get_node_names(side.node, &names, &name_spaces));
  const size_t count = names.size;
  CHECK(rcutils_string_array_fini(&names) == RCUTILS_RET_OK);
  CHECK(rcutils_string_array_fini(&name_spaces) == RCUTILS_RET_OK);
  return count;
}

size_t publishers(const Side &side) {
  size_t count = 0;
  OK(rmw_count_publishers(side.node, "/crowd", &count));
  return count;
}

}  // namespace

int main(int, char **arguments) {
  const size_t processes = std::stoul(arguments[2]);
  Side side((std::string("crowd") + arguments[1]).c_str());
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<test_msgs::msg::BasicTypes>();
  const auto options = rmw_get_default_publisher_options();
  rmw_publisher_t *publisher =
      rmw_create_publisher(side.node, type, "/crowd", &rmw_qos_profile_default, &options);
  CHECK(publisher != nullptr);
  rmw_wait_set_t *set = rmw_create_wait_set(&side.context, 0);
  CHECK(set != nullptr);
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 0;
  const double begin_us = cpu_us();
  size_t looks = 1;
  for (; nodes(side) != processes || publishers(side) != processes; ++looks) {
    void *changed[] = {rmw_node_get_graph_guard_condition(side.node)->data};
    rmw_guard_conditions_t conditions{1, changed};
    OK(rmw_wait(nullptr, &conditions, nullptr, nullptr, nullptr, set, nullptr));
  }
  const double took_us = (cpu_us() - begin_us) / (2.0 * static_cast<double>(looks));
  std::printf("all %zu %.0f %.2f\n", looks, took_us, memory_mib());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  OK(rmw_destroy_publisher(side.node, publisher));
  OK(rmw_destroy_wait_set(set));
}
