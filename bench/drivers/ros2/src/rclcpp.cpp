/* With rclcpp: a complete node, subscriptions with callbacks, and a SingleThreadedExecutor in its
 * own thread.
 *
 * The kit's loan is the data of a new message, which is published as a std::unique_ptr. Within one
 * process, with use_intra_process_comms, it is passed on without a copy. Ping of a round trip takes
 * by a rclcpp::WaitSet, because the bench needs the answer in the thread that sent the message.
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>

#include "library.hpp"
#include "link.hpp"
#include "message.hpp"

namespace {

/* The topics of one direction, and their common quality of service. */
struct Topics {
  Topics(const myelin_bench_prepare &prepare, bool is_of_ping) : qos(of(myelin::qos_of(prepare)))
  {
    for (std::uint32_t number = 0; number < std::max(prepare.topics, 1u); number++)
      names.push_back(myelin::topic_of(prepare, is_of_ping, number));
  }

  static rclcpp::QoS of(const rmw_qos_profile_t &profile)
  {
    return rclcpp::QoS(rclcpp::QoSInitialization::from_rmw(profile), profile);
  }

  std::vector<std::string> names;
  rclcpp::QoS qos;
};

/* Subscriptions in a callback group and, once it listens, in an executor of their own. */
template <typename Message> class RclcppReceiver : public myelin::Receiver {
public:
  RclcppReceiver(rclcpp::Node::SharedPtr node, const Topics &topics)
      : node_(std::move(node)),
        group_(node_->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false))
  {
    rclcpp::SubscriptionOptions options;
    options.callback_group = group_;
    const auto call = [this](std::unique_ptr<Message> message) {
      call_(context_, message->data.data(), message->data.size());
    };
    for (const std::string &name : topics.names)
      subscriptions_.push_back(
          node_->create_subscription<Message>(name, topics.qos, call, options));
  }

  ~RclcppReceiver() override { unlisten(); }

  std::size_t matched() const
  {
    std::size_t least = SIZE_MAX;
    for (const auto &subscription : subscriptions_)
      least = std::min(least, subscription->get_publisher_count());
    return least;
  }

  bool wait(std::uint64_t until_ns) override
  {
    /* Not earlier: a subscription in an executor must not be in a wait set. */
    if (!wait_set_) {
      wait_set_.emplace();
      for (const auto &subscription : subscriptions_)
        wait_set_->add_subscription(subscription);
    }
    const auto result = wait_set_->wait(std::chrono::nanoseconds(myelin::left_ns(until_ns)));
    return result.kind() == rclcpp::WaitResultKind::Ready;
  }

  bool take(const void *&message, std::size_t &bytes) override
  {
    rclcpp::MessageInfo info;
    const auto has_taken = [&](const auto &it) { return it->take(taken_, info); };
    if (!std::any_of(subscriptions_.begin(), subscriptions_.end(), has_taken))
      return false;
    message = taken_.data.data();
    bytes = taken_.data.size();
    return true;
  }

  void listen(myelin_bench_call call, void *context) override
  {
    call_ = call;
    context_ = context;
    executor_.add_callback_group(group_, node_->get_node_base_interface());
    /* Like spin(), but also ends if it is cancelled before it has begun. */
    thread_ = std::thread([this] {
      while (!is_over_)
        executor_.spin_once(std::chrono::milliseconds(100));
    });
  }

  void unlisten() override
  {
    if (!thread_.joinable())
      return;
    is_over_ = true;
    executor_.cancel();
    thread_.join();
  }

private:
  rclcpp::Node::SharedPtr node_;
  rclcpp::CallbackGroup::SharedPtr group_;
  std::vector<typename rclcpp::Subscription<Message>::SharedPtr> subscriptions_;
  std::optional<rclcpp::WaitSet> wait_set_;
  Message taken_;
  myelin_bench_call call_ = nullptr;
  void *context_ = nullptr;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/* A private rclcpp context, which ends when everything made with it is destroyed. */
struct Initialised {
  explicit Initialised(const myelin_bench_prepare &prepare)
  {
    rclcpp::InitOptions options;
    options.auto_initialize_logging(false);
    options.set_domain_id(prepare.domain);
    rclcpp::init(0, nullptr, options, rclcpp::SignalHandlerOptions::None);
  }

  ~Initialised() { rclcpp::shutdown(); }
};

template <typename Message> class RclcppLink : public myelin::Link {
public:
  explicit RclcppLink(const myelin_bench_prepare &prepare)
      : published_(prepare, prepare.is_ping), initialised_(prepare)
  {
    myelin::check_middleware(prepare.system);
    const bool is_intra = std::strcmp(prepare.system, MYELIN_ROS2_INTRA) == 0;
    const auto options = rclcpp::NodeOptions().use_intra_process_comms(is_intra);
    node_ = std::make_shared<rclcpp::Node>(prepare.is_ping ? "ping" : "pong", options);
    if (prepare.publishes)
      for (const std::string &name : published_.names)
        publishers_.push_back(node_->create_publisher<Message>(name, published_.qos));
    if (prepare.subscribes && !is_intra) {
      const Topics subscribed(prepare, !prepare.is_ping);
      receiver_ = std::make_unique<RclcppReceiver<Message>>(node_, subscribed);
    }
  }

  std::size_t matched() override
  {
    std::size_t least = receiver_ ? receiver_->matched() : SIZE_MAX;
    for (const auto &publisher : publishers_)
      least = std::min(least, publisher->get_subscription_count());
    return least;
  }

  void *loan(std::size_t bytes) override
  {
    message_ = std::make_unique<Message>();
    myelin::resize(*message_, bytes);
    return message_->data.data();
  }

  void publish() override { publishers_[selected]->publish(std::move(message_)); }

  std::unique_ptr<myelin::Receiver> subscribe() override
  {
    return std::make_unique<RclcppReceiver<Message>>(node_, published_);
  }

  bool wait(std::uint64_t until_ns) override { return receiver_->wait(until_ns); }

  bool take(const void *&message, std::size_t &bytes) override
  {
    return receiver_->take(message, bytes);
  }

  void listen(myelin_bench_call call, void *context) override { receiver_->listen(call, context); }
  void unlisten() override { receiver_->unlisten(); }

private:
  Topics published_;
  Initialised initialised_;
  rclcpp::Node::SharedPtr node_;
  std::vector<typename rclcpp::Publisher<Message>::SharedPtr> publishers_;
  std::unique_ptr<RclcppReceiver<Message>> receiver_;
  std::unique_ptr<Message> message_;
};

} // namespace

std::unique_ptr<myelin::Link> myelin::open_rclcpp(const myelin_bench_prepare &prepare)
{
  use_middleware(prepare.system);
  if (is_image(prepare))
    return std::make_unique<RclcppLink<Image>>(prepare);
  return std::make_unique<RclcppLink<Octets>>(prepare);
}
