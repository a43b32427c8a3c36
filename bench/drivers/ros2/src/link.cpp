/* The adaptor as the functions of the kit's table. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "link.hpp"

namespace {

using myelin::Link;

constexpr std::chrono::milliseconds LOOK_AGAIN{1};

/* The driver alone determines a run, not the user's environment: only on this host. */
void set_environment()
{
  for (const char *variable : {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE",
                               "RMW_FASTRTPS_USE_QOS_FROM_XML", "RMW_FASTRTPS_PUBLICATION_MODE",
                               "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE"})
    unsetenv(variable);
  setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
  /* The same for Humble. */
  setenv("ROS_LOCALHOST_ONLY", "1", 1);
}

std::unique_ptr<Link> open_by_client_library(const myelin_bench_prepare &prepare)
{
#ifdef WITH_RCLCPP
  if (std::strncmp(prepare.system, MYELIN_ROS2_RCL, std::strlen(MYELIN_ROS2_RCL)) != 0)
    return myelin::open_rclcpp(prepare);
#endif
  return myelin::open_rcl(prepare);
}

struct Ros2 {
  static constexpr const char *middleware = "ROS 2";

  static std::unique_ptr<Link> open(const myelin_bench_prepare &prepare)
  {
    set_environment();
    auto link = open_by_client_library(prepare);
    /* Uses ROS 2's own counts. In one process the subscribers are opened later. */
    if (std::strcmp(prepare.system, MYELIN_ROS2_INTRA) != 0)
      myelin_bench::wait_until_matched(prepare, LOOK_AGAIN, [&] {
        return link->matched() >= prepare.others;
      });
    return link;
  }
};

} // namespace

std::string myelin::topic_of(const myelin_bench_prepare &prepare, bool is_of_ping,
                             std::uint32_t number)
{
  std::string name = std::string(is_of_ping ? "ping_" : "pong_") + prepare.run;
  std::replace(name.begin(), name.end(), '-', '_');
  return prepare.topics > 1 ? name + '_' + std::to_string(number) : name;
}

rmw_qos_profile_t myelin::qos_of(const myelin_bench_prepare &prepare)
{
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  if (prepare.one_way) {
    qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    qos.depth = std::max(prepare.depth, 1u);
  }
  return qos;
}

std::int64_t myelin::left_ns(std::uint64_t until_ns)
{
  constexpr std::uint64_t NS_MAX = 3'600'000'000'000;
  return static_cast<std::int64_t>(std::min(myelin_bench_left_ns(until_ns), NS_MAX));
}

extern "C" const myelin_bench_link myelin_ros2_link = myelin_bench::Table<Ros2>::link;
