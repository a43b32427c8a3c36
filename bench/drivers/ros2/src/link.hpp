/* One role of a run, whichever of ROS 2's client libraries it is written with. */
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
using myelin_bench::publishes;
using myelin_bench::subscribes;

class Link : public myelin_bench::Link {
public:
  /* How many are matched on the topic that has fewest. */
  virtual std::size_t matched() = 0;
};

/* Opened, and not matched yet. */
std::unique_ptr<Link> open_rcl(const myelin_bench_prepare &prepare);
std::unique_ptr<Link> open_rclcpp(const myelin_bench_prepare &prepare);

/* Ping publishes on `ping_<run>`, pong on `pong_<run>`; several topics have their number behind that. */
std::string topic_of(const myelin_bench_prepare &prepare, bool is_of_ping, std::uint32_t number);

/* Round trips have ROS 2's default, as rclcpp::QoS(10); streams are as rclcpp::SensorDataQoS() with
 * keep_last(depth). */
rmw_qos_profile_t qos_of(const myelin_bench_prepare &prepare);

/* Nanoseconds from now; not more than ROS 2 takes. */
std::int64_t left_ns(std::uint64_t until_ns);

} // namespace myelin

#endif
