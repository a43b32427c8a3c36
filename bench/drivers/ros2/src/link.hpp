/* One role of a run, whichever of ROS 2's client libraries it is written with. */
#ifndef MYELIN_ROS2_LINK_HPP
#define MYELIN_ROS2_LINK_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <rmw/qos_profiles.h>

#include "link.h"

namespace myelin {

class Failure : public std::runtime_error {
public:
  explicit Failure(const std::string &what, std::string remedy = {})
      : std::runtime_error(what), remedy_(std::move(remedy))
  {
  }

  const std::string &remedy() const { return remedy_; }

private:
  std::string remedy_;
};

/* A receiving end: it waits and takes, or calls. What it cannot do the system's table does not offer. */
class Receiver {
public:
  virtual ~Receiver() = default;
  Receiver() = default;
  Receiver(const Receiver &) = delete;
  Receiver &operator=(const Receiver &) = delete;

  virtual bool wait(std::uint64_t until_ns) = 0;
  /* The bytes are valid until the next take. */
  virtual bool take(const void *&message, std::size_t &bytes) = 0;
  virtual void listen(myelin_bench_call, void *) { throw Failure("it has no callbacks"); }
  virtual void unlisten() {}
};

/* Both directions of a role, or the one of a stream. */
class Link : public Receiver {
public:
  /* How many are matched on the topic that has fewest. */
  virtual std::size_t matched() = 0;
  virtual void *loan(std::size_t bytes) = 0;
  /* What was loaned last. */
  virtual void publish() = 0;
  /* A further subscriber of this process, on what is published. */
  virtual std::unique_ptr<Receiver> subscribe() { throw Failure("it has one subscriber"); }

  std::uint32_t selected = 0; /* topic of the next publish */
};

/* Opened, and not matched yet. */
std::unique_ptr<Link> open_rcl(const myelin_bench_prepare &prepare);
std::unique_ptr<Link> open_rclcpp(const myelin_bench_prepare &prepare);

/* Ping publishes on `ping_<run>`, pong on `pong_<run>`; several topics have their number behind that. */
std::string topic_of(const myelin_bench_prepare &prepare, bool is_of_ping, std::uint32_t number);
bool publishes(const myelin_bench_prepare &prepare);
bool subscribes(const myelin_bench_prepare &prepare);

/* Round trips have ROS 2's default, as rclcpp::QoS(10); streams are as rclcpp::SensorDataQoS() with
 * keep_last(depth). */
rmw_qos_profile_t qos_of(const myelin_bench_prepare &prepare);

/* Nanoseconds from now; not more than ROS 2 takes. */
std::int64_t left_ns(std::uint64_t until_ns);

} // namespace myelin

#endif
