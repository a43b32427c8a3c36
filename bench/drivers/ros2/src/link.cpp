/* The adaptor in the form of the kit's table. No exception leaves this file. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "link.hpp"

namespace {

using myelin::Failure;
using myelin::Link;
using myelin::Receiver;

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

/* By ROS 2's own counts of who is matched. */
void wait_until_matched(Link &link, const myelin_bench_prepare &prepare)
{
  const std::uint64_t until_ns = myelin_bench_now_ns() + prepare.match_timeout_ns;
  const std::uint32_t others = prepare.is_ping ? prepare.subscribers : prepare.publishers;
  const std::size_t wanted = prepare.one_way ? std::max(others, 1u) : 1;
  while (link.matched() < wanted) {
    if (myelin_bench_now_ns() >= until_ns)
      throw Failure("no other side in either direction, or not all of them, within the time to match",
                    "what it met is in this run's log");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::unique_ptr<Link> open(const myelin_bench_prepare &prepare)
{
#ifdef WITH_RCLCPP
  if (std::strncmp(prepare.system, MYELIN_ROS2_RCL, std::strlen(MYELIN_ROS2_RCL)) != 0)
    return myelin::open_rclcpp(prepare);
#endif
  return myelin::open_rcl(prepare);
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

/* A link is asked to publish; it, or a subscriber, to receive. */
Link &link_of(void *context)
{
  return *static_cast<Link *>(static_cast<Receiver *>(context));
}

Receiver &receiver_of(void *context)
{
  return *static_cast<Receiver *>(context);
}

int open_link(const myelin_bench_prepare *prepare, void **context)
{
  return guarded([&] {
    set_environment();
    auto link = open(*prepare);
    /* In one process the subscribers are still to come. */
    if (std::strcmp(prepare->system, MYELIN_ROS2_INTRA) != 0)
      wait_until_matched(*link, *prepare);
    *context = static_cast<Receiver *>(link.release());
    return 0;
  });
}

void close_receiver(void *context)
{
  delete &receiver_of(context);
}

int loan(void *context, std::size_t bytes, void **memory)
{
  return guarded([&] {
    *memory = link_of(context).loan(bytes);
    return 0;
  });
}

int publish_loan(void *context)
{
  return guarded([&] {
    link_of(context).publish();
    return 0;
  });
}

int publish(void *context, const void *message, std::size_t bytes)
{
  return guarded([&] {
    std::memcpy(link_of(context).loan(bytes), message, bytes);
    link_of(context).publish();
    return 0;
  });
}

void select_topic(void *context, std::uint32_t topic)
{
  link_of(context).selected = topic;
}

int subscribe(void *context, std::uint32_t, void **subscriber)
{
  return guarded([&] {
    *subscriber = link_of(context).subscribe().release();
    return 0;
  });
}

int wait_for_sample(void *context, std::uint64_t until_ns)
{
  return guarded([&] { return int(receiver_of(context).wait(until_ns)); });
}

int take(void *context, std::uint64_t, const void **message, std::size_t *bytes)
{
  return guarded([&] { return int(receiver_of(context).take(*message, *bytes)); });
}

int listen(void *context, myelin_bench_call call, void *call_context)
{
  return guarded([&] {
    receiver_of(context).listen(call, call_context);
    return 0;
  });
}

void unlisten(void *context)
{
  receiver_of(context).unlisten();
}

} // namespace

std::string myelin::topic_of(const myelin_bench_prepare &prepare, bool is_of_ping,
                             std::uint32_t number)
{
  std::string name = std::string(is_of_ping ? "ping_" : "pong_") + prepare.run;
  std::replace(name.begin(), name.end(), '-', '_');
  return prepare.topics > 1 ? name + '_' + std::to_string(number) : name;
}

bool myelin::publishes(const myelin_bench_prepare &prepare)
{
  return prepare.is_ping || !prepare.one_way;
}

bool myelin::subscribes(const myelin_bench_prepare &prepare)
{
  return !prepare.is_ping || !prepare.one_way;
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
  const std::uint64_t now_ns = myelin_bench_now_ns();
  return static_cast<std::int64_t>(std::min(until_ns > now_ns ? until_ns - now_ns : 0, NS_MAX));
}

extern "C" const myelin_bench_link myelin_ros2_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan, publish_loan, publish, wait_for_sample, take, nullptr,
    close_receiver, select_topic, subscribe, close_receiver, listen, unlisten};
