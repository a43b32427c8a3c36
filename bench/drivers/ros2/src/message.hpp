/* The two types of messages, behind one interface. */
#ifndef MYELIN_ROS2_MESSAGE_HPP
#define MYELIN_ROS2_MESSAGE_HPP

#include <cstddef>

#include <sensor_msgs/msg/image.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>

#include "link.h"

namespace myelin {

/* For frames. */
using Image = sensor_msgs::msg::Image;
/* For all others. */
using Octets = std_msgs::msg::UInt8MultiArray;

inline bool is_image(const myelin_bench_prepare &prepare)
{
  return prepare.workload == MYELIN_BENCH_IMAGE;
}

inline void resize(Image &image, std::size_t bytes)
{
  image.encoding = "rgb8";
  image.height = 1;
  image.width = image.step = static_cast<std::uint32_t>(bytes);
  image.data.resize(bytes);
}

inline void resize(Octets &octets, std::size_t bytes)
{
  octets.data.resize(bytes);
}

} // namespace myelin

#endif
