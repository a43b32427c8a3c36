/* The adaptor: one role of a round trip or of a stream over ROS 2, in the form of the kit's table.
 *
 * Ping publishes on topic `ping_<run>` and subscribes to `pong_<run>`, pong the other way round; of a
 * stream there is `ping_<run>_0` and so on. A frame is a sensor_msgs/msg/Image, anything else a
 * std_msgs/msg/UInt8MultiArray. The kit's loan is the data of the publisher's own message: what a user
 * fills before he calls publish. No exception leaves this file.
 */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sensor_msgs/msg/image.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>

#include "library.hpp"
#include "link.h"

namespace {

using myelin::Failure;
using myelin::Library;

/* One of the two types. */
class Message {
public:
  Message(bool is_image, std::size_t bytes) : is_image_(is_image)
  {
    if (is_image) {
      image_.encoding = "rgb8";
      image_.height = 1;
      image_.width = image_.step = static_cast<std::uint32_t>(bytes);
    }
    data().resize(bytes);
  }

  void *object() { return is_image_ ? static_cast<void *>(&image_) : &octets_; }
  std::vector<std::uint8_t> &data() { return is_image_ ? image_.data : octets_.data; }

private:
  bool is_image_;
  sensor_msgs::msg::Image image_;
  std_msgs::msg::UInt8MultiArray octets_;
};

/* At the end nothing can be done about it. */
void ignore(rcl_ret_t) {}

/* What rcl initialises: finished in the end, the last first. */
class Link {
public:
  explicit Link(const myelin_bench_prepare &prepare);
  ~Link();
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  void match(const myelin_bench_prepare &prepare);
  void publish();
  bool wait(std::uint64_t until_ns);
  bool take();

  Message sent, taken;
  std::uint32_t selected = 0; /* publisher of the next loan or publish */

private:
  void open(const myelin_bench_prepare &prepare);
  void close();
  void publish_on(const std::string &topic, const rmw_qos_profile_t &qos);
  void subscribe_to(const std::string &topic, const rmw_qos_profile_t &qos);
  bool take_from(rcl_subscription_t &subscription);

  Library rcl_;
  const rosidl_message_type_support_t *type_;
  rcl_context_t context_ = rcl_.rcl_get_zero_initialized_context();
  rcl_node_t node_ = rcl_.rcl_get_zero_initialized_node();
  rcl_wait_set_t wait_set_ = rcl_.rcl_get_zero_initialized_wait_set();
  /* Not moved any more once they are initialised. */
  std::vector<std::unique_ptr<rcl_publisher_t>> publishers_;
  std::vector<std::unique_ptr<rcl_subscription_t>> subscriptions_;
  std::vector<rcl_subscription_t *> ready_; /* by the last wait, those taken from last first */
};

bool is_image(const myelin_bench_prepare &prepare)
{
  return prepare.workload == MYELIN_BENCH_IMAGE;
}

/* Default and sensor data, as rclcpp::QoS(10) and rclcpp::SensorDataQoS().keep_last(depth). */
rmw_qos_profile_t qos_of(const myelin_bench_prepare &prepare)
{
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  if (prepare.one_way) {
    qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    qos.depth = std::max(prepare.depth, 1u);
  }
  return qos;
}

std::string topic_of(const myelin_bench_prepare &prepare, bool is_of_ping, std::uint32_t number)
{
  std::string name = std::string(is_of_ping ? "ping_" : "pong_") + prepare.run;
  std::replace(name.begin(), name.end(), '-', '_');
  return prepare.topics > 1 ? name + '_' + std::to_string(number) : name;
}

/* A run is what the driver says, not what the user's environment adds: on this host alone. */
void set_environment()
{
  for (const char *variable : {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE",
                               "RMW_FASTRTPS_USE_QOS_FROM_XML", "RMW_FASTRTPS_PUBLICATION_MODE",
                               "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE"})
    unsetenv(variable);
  setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
  /* The same to Humble. */
  setenv("ROS_LOCALHOST_ONLY", "1", 1);
}

Link::Link(const myelin_bench_prepare &prepare)
    : sent(is_image(prepare), prepare.message_bytes),
      taken(is_image(prepare), prepare.message_bytes), rcl_((set_environment(), prepare.system)),
      type_(is_image(prepare) ? rcl_.image : rcl_.octets)
{
  try {
    open(prepare);
  } catch (...) {
    close();
    throw;
  }
}

Link::~Link() { close(); }

void Link::open(const myelin_bench_prepare &prepare)
{
  const rcl_allocator_t allocator = rcl_.rcutils_get_default_allocator();
  rcl_init_options_t options = rcl_.rcl_get_zero_initialized_init_options();
  rcl_.check(rcl_.rcl_init_options_init(&options, allocator), "options");
  const rcl_ret_t is_set = rcl_.rcl_init_options_set_domain_id(&options, prepare.domain);
  const rcl_ret_t code = is_set == RCL_RET_OK ? rcl_.rcl_init(0, nullptr, &options, &context_) : is_set;
  ignore(rcl_.rcl_init_options_fini(&options));
  rcl_.check(code, "rcl_init");

  rcl_node_options_t of_node = rcl_.rcl_node_get_default_options();
  /* A publisher for the texts of a log, of which there are none. */
  of_node.enable_rosout = false;
  const char *name = prepare.is_ping ? "ping" : "pong";
  rcl_.check(rcl_.rcl_node_init(&node_, name, "", &context_, &of_node), "node");

  const rmw_qos_profile_t qos = qos_of(prepare);
  for (std::uint32_t number = 0; number < std::max(prepare.topics, 1u); number++) {
    if (prepare.is_ping || !prepare.one_way)
      publish_on(topic_of(prepare, prepare.is_ping, number), qos);
    if (!prepare.is_ping || !prepare.one_way)
      subscribe_to(topic_of(prepare, !prepare.is_ping, number), qos);
  }
  rcl_.check(rcl_.rcl_wait_set_init(&wait_set_, subscriptions_.size(), 0, 0, 0, 0, 0, &context_,
                                    allocator),
             "wait set");
}

void Link::close()
{
  ignore(rcl_.rcl_wait_set_fini(&wait_set_));
  for (auto &subscription : subscriptions_)
    ignore(rcl_.rcl_subscription_fini(subscription.get(), &node_));
  for (auto &publisher : publishers_)
    ignore(rcl_.rcl_publisher_fini(publisher.get(), &node_));
  ignore(rcl_.rcl_node_fini(&node_));
  if (context_.impl != nullptr) {
    ignore(rcl_.rcl_shutdown(&context_));
    ignore(rcl_.rcl_context_fini(&context_));
  }
  rcl_.rcutils_reset_error();
}

void Link::publish_on(const std::string &topic, const rmw_qos_profile_t &qos)
{
  rcl_publisher_options_t options = rcl_.rcl_publisher_get_default_options();
  options.qos = qos;
  auto publisher = std::make_unique<rcl_publisher_t>(rcl_.rcl_get_zero_initialized_publisher());
  rcl_.check(rcl_.rcl_publisher_init(publisher.get(), &node_, type_, topic.c_str(), &options),
             "publisher");
  publishers_.push_back(std::move(publisher));
}

void Link::subscribe_to(const std::string &topic, const rmw_qos_profile_t &qos)
{
  rcl_subscription_options_t options = rcl_.rcl_subscription_get_default_options();
  options.qos = qos;
  auto subscription =
      std::make_unique<rcl_subscription_t>(rcl_.rcl_get_zero_initialized_subscription());
  rcl_.check(rcl_.rcl_subscription_init(subscription.get(), &node_, type_, topic.c_str(), &options),
             "subscription");
  subscriptions_.push_back(std::move(subscription));
}

/* By rcl's own counts of who is matched. */
void Link::match(const myelin_bench_prepare &prepare)
{
  const std::uint64_t until_ns = myelin_bench_now_ns() + prepare.match_timeout_ns;
  const std::size_t pings = prepare.one_way ? std::max(prepare.publishers, 1u) : 1;
  const std::size_t pongs = prepare.one_way ? std::max(prepare.subscribers, 1u) : 1;
  const std::size_t others = prepare.is_ping ? pongs : pings;
  const auto is_matched = [&] {
    std::size_t count = 0;
    for (auto &publisher : publishers_) {
      rcl_.check(rcl_.rcl_publisher_get_subscription_count(publisher.get(), &count), "matched");
      if (count < others)
        return false;
    }
    for (auto &subscription : subscriptions_) {
      rcl_.check(rcl_.rcl_subscription_get_publisher_count(subscription.get(), &count), "matched");
      if (count < others)
        return false;
    }
    return true;
  };
  while (!is_matched()) {
    if (myelin_bench_now_ns() >= until_ns)
      throw Failure("no other side in either direction, or not all of them, within the time to match",
                    "what it met is in this run's log");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Link::publish()
{
  rcl_.check(rcl_.rcl_publish(publishers_[selected].get(), sent.object(), nullptr), "publish");
}

/* As an executor does: all subscriptions into the wait set, each time. */
bool Link::wait(std::uint64_t until_ns)
{
  const std::uint64_t now_ns = myelin_bench_now_ns();
  const std::uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  rcl_.check(rcl_.rcl_wait_set_clear(&wait_set_), "wait set");
  for (auto &subscription : subscriptions_)
    rcl_.check(rcl_.rcl_wait_set_add_subscription(&wait_set_, subscription.get(), nullptr),
               "wait set");
  constexpr std::uint64_t NS_MAX = 3'600'000'000'000;
  const rcl_ret_t code =
      rcl_.rcl_wait(&wait_set_, static_cast<std::int64_t>(std::min(left_ns, NS_MAX)));
  if (code == RCL_RET_TIMEOUT)
    return false;
  rcl_.check(code, "rcl_wait");
  ready_.clear();
  for (std::size_t at = 0; at < wait_set_.size_of_subscriptions; at++)
    if (wait_set_.subscriptions[at] != nullptr)
      ready_.push_back(subscriptions_[at].get());
  return !ready_.empty();
}

bool Link::take()
{
  if (subscriptions_.size() == 1)
    return take_from(*subscriptions_.front());
  for (; !ready_.empty(); ready_.pop_back())
    if (take_from(*ready_.back()))
      return true;
  return false;
}

bool Link::take_from(rcl_subscription_t &subscription)
{
  const rcl_ret_t code = rcl_.rcl_take(&subscription, taken.object(), nullptr, nullptr);
  if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
    rcl_.rcutils_reset_error();
    return false;
  }
  rcl_.check(code, "taking");
  return true;
}

/* Runs `act`; an exception becomes the kit's error and -1. */
template <typename Act> int guarded(Act act) noexcept
{
  try {
    return act();
  } catch (const Failure &failure) {
    const std::string text = std::string("ROS 2: ") + failure.what();
    myelin_bench_error(text.c_str(), failure.remedy().empty() ? nullptr : failure.remedy().c_str());
  } catch (const std::exception &error) {
    myelin_bench_error((std::string("ROS 2: ") + error.what()).c_str(), nullptr);
  }
  return -1;
}

Link &of(void *context)
{
  return *static_cast<Link *>(context);
}

int open_link(const myelin_bench_prepare *prepare, void **context)
{
  return guarded([&] {
    auto link = std::make_unique<Link>(*prepare);
    link->match(*prepare);
    *context = link.release();
    return 0;
  });
}

void close_link(void *context)
{
  delete &of(context);
}

void check_size(Link &link, std::size_t bytes)
{
  if (bytes != link.sent.data().size())
    throw Failure("a message of another size than prepared");
}

int loan(void *context, std::size_t bytes, void **memory)
{
  return guarded([&] {
    check_size(of(context), bytes);
    *memory = of(context).sent.data().data();
    return 0;
  });
}

int publish_loan(void *context)
{
  return guarded([&] {
    of(context).publish();
    return 0;
  });
}

int publish(void *context, const void *message, std::size_t bytes)
{
  return guarded([&] {
    Link &link = of(context);
    check_size(link, bytes);
    std::copy_n(static_cast<const std::uint8_t *>(message), bytes, link.sent.data().data());
    link.publish();
    return 0;
  });
}

void select_topic(void *context, std::uint32_t topic)
{
  of(context).selected = topic;
}

int wait_for_sample(void *context, std::uint64_t until_ns)
{
  return guarded([&] { return int(of(context).wait(until_ns)); });
}

int take(void *context, std::uint64_t, const void **message, std::size_t *bytes)
{
  return guarded([&] {
    Link &link = of(context);
    if (!link.take())
      return 0;
    *message = link.taken.data().data();
    *bytes = link.taken.data().size();
    return 1;
  });
}

} // namespace

extern "C" const myelin_bench_link myelin_ros2_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan, publish_loan, publish, wait_for_sample, take, nullptr,
    close_link, select_topic, nullptr, nullptr, nullptr, nullptr};
