/* One role of a run, with either of ROS 2's client libraries. */
#ifndef MYELIN_ROS2_LINK_HPP
#define MYELIN_ROS2_LINK_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <rmw/qos_profiles.h>

#include "link.h"
#include "myelin_bench_link.hpp"

namespace myelin {

using myelin_bench::Failure;
using myelin_bench::Receiver;

class Link : public myelin_bench::Link {
public:
  /* The smallest number of matched ends of a topic. */
  virtual std::size_t matched() = 0;
};

/* Opened, but not matched yet. */
std::unique_ptr<Link> open_rcl(const myelin_bench_prepare &prepare);
std::unique_ptr<Link> open_rclcpp(const myelin_bench_prepare &prepare);

/* Ping publishes on `ping_<run>`, pong on `pong_<run>`; with several topics their number follows.
 */
std::string topic_of(const myelin_bench_prepare &prepare, bool is_of_ping, std::uint32_t number);

/* Round trips have ROS 2's default, like rclcpp::QoS(10); streams are like rclcpp::SensorDataQoS()
 * with keep_last(depth). */
rmw_qos_profile_t qos_of(const myelin_bench_prepare &prepare);

/* Nanoseconds until then, at most what ROS 2 accepts. */
std::int64_t left_ns(std::uint64_t until_ns);

} // namespace myelin

#endif
