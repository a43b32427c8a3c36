/* With rcl: a node, publishers, subscriptions and a wait set.
 *
 * The kit's loan is the data of the publisher's own message, which a user fills before publishing.
 */
#include <algorithm>
#include <vector>

#include "library.hpp"
#include "link.hpp"
#include "message.hpp"

namespace {

using myelin::Failure;
using myelin::Library;

/* A message of either type. */
class Message {
public:
  Message(bool is_image, std::size_t bytes) : is_image_(is_image)
  {
    is_image ? myelin::resize(image_, bytes) : myelin::resize(octets_, bytes);
  }

  void *object() { return is_image_ ? static_cast<void *>(&image_) : &octets_; }
  std::vector<std::uint8_t> &data() { return is_image_ ? image_.data : octets_.data; }

private:
  bool is_image_;
  myelin::Image image_;
  myelin::Octets octets_;
};

/* At the end nothing can be done about an error. */
void ignore(rcl_ret_t) {}

class RclLink : public myelin::Link {
public:
  explicit RclLink(const myelin_bench_prepare &prepare);
  ~RclLink() override { close(); }

  std::size_t matched() override;
  void *loan(std::size_t bytes) override;
  void publish() override;
  bool wait(std::uint64_t until_ns) override;
  bool take(const void *&message, std::size_t &bytes) override;

private:
  void open(const myelin_bench_prepare &prepare);
  void close();
  void publish_on(const std::string &topic, const rmw_qos_profile_t &qos);
  void subscribe_to(const std::string &topic, const rmw_qos_profile_t &qos);
  bool take_any();
  bool take_from(rcl_subscription_t &subscription);

  Message sent_, taken_;
  Library rcl_;
  const rosidl_message_type_support_t *type_;
  /* Objects that rcl initialises; finished at the end, in reverse order. */
  rcl_context_t context_ = rcl_.rcl_get_zero_initialized_context();
  rcl_node_t node_ = rcl_.rcl_get_zero_initialized_node();
  rcl_wait_set_t wait_set_ = rcl_.rcl_get_zero_initialized_wait_set();
  /* Not moved after they are initialised. */
  std::vector<std::unique_ptr<rcl_publisher_t>> publishers_;
  std::vector<std::unique_ptr<rcl_subscription_t>> subscriptions_;
  std::vector<rcl_subscription_t *> ready_; /* found by the last wait, and not empty since */
};

RclLink::RclLink(const myelin_bench_prepare &prepare)
    : sent_(myelin::is_image(prepare), prepare.message_bytes),
      taken_(myelin::is_image(prepare), prepare.message_bytes), rcl_(prepare.system),
      type_(myelin::is_image(prepare) ? rcl_.image : rcl_.octets)
{
  try {
    open(prepare);
  } catch (...) {
    close();
    throw;
  }
}

void RclLink::open(const myelin_bench_prepare &prepare)
{
  const rcl_allocator_t allocator = rcl_.rcutils_get_default_allocator();
  rcl_init_options_t options = rcl_.rcl_get_zero_initialized_init_options();
  rcl_.check(rcl_.rcl_init_options_init(&options, allocator), "options");
  rcl_ret_t code = rcl_.rcl_init_options_set_domain_id(&options, prepare.domain);
  if (code == RCL_RET_OK)
    code = rcl_.rcl_init(0, nullptr, &options, &context_);
  ignore(rcl_.rcl_init_options_fini(&options));
  rcl_.check(code, "rcl_init");

  rcl_node_options_t of_node = rcl_.rcl_node_get_default_options();
  /* A publisher for log texts, of which there are none. */
  of_node.enable_rosout = false;
  const char *name = prepare.is_ping ? "ping" : "pong";
  rcl_.check(rcl_.rcl_node_init(&node_, name, "", &context_, &of_node), "node");

  const rmw_qos_profile_t qos = myelin::qos_of(prepare);
  for (std::uint32_t number = 0; number < std::max(prepare.topics, 1u); number++) {
    if (prepare.publishes)
      publish_on(myelin::topic_of(prepare, prepare.is_ping, number), qos);
    if (prepare.subscribes)
      subscribe_to(myelin::topic_of(prepare, !prepare.is_ping, number), qos);
  }
  rcl_.check(rcl_.rcl_wait_set_init(&wait_set_, subscriptions_.size(), 0, 0, 0, 0, 0, &context_,
                                    allocator),
             "wait set");
}

void RclLink::close()
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

void RclLink::publish_on(const std::string &topic, const rmw_qos_profile_t &qos)
{
  rcl_publisher_options_t options = rcl_.rcl_publisher_get_default_options();
  options.qos = qos;
  auto publisher = std::make_unique<rcl_publisher_t>(rcl_.rcl_get_zero_initialized_publisher());
  rcl_.check(rcl_.rcl_publisher_init(publisher.get(), &node_, type_, topic.c_str(), &options),
             "publisher");
  publishers_.push_back(std::move(publisher));
}

void RclLink::subscribe_to(const std::string &topic, const rmw_qos_profile_t &qos)
{
  rcl_subscription_options_t options = rcl_.rcl_subscription_get_default_options();
  options.qos = qos;
  auto subscription =
      std::make_unique<rcl_subscription_t>(rcl_.rcl_get_zero_initialized_subscription());
  rcl_.check(rcl_.rcl_subscription_init(subscription.get(), &node_, type_, topic.c_str(), &options),
             "subscription");
  subscriptions_.push_back(std::move(subscription));
}

std::size_t RclLink::matched()
{
  std::size_t least = SIZE_MAX, count = 0;
  for (auto &publisher : publishers_) {
    rcl_.check(rcl_.rcl_publisher_get_subscription_count(publisher.get(), &count), "matched");
    least = std::min(least, count);
  }
  for (auto &subscription : subscriptions_) {
    rcl_.check(rcl_.rcl_subscription_get_publisher_count(subscription.get(), &count), "matched");
    least = std::min(least, count);
  }
  return least;
}

void *RclLink::loan(std::size_t bytes)
{
  sent_.data().resize(bytes); /* never more than it was made with */
  return sent_.data().data();
}

void RclLink::publish()
{
  rcl_.check(rcl_.rcl_publish(publishers_[selected].get(), sent_.object(), nullptr), "publish");
}

/* Like an executor: puts all subscriptions into the wait set, each time. */
bool RclLink::wait(std::uint64_t until_ns)
{
  rcl_.check(rcl_.rcl_wait_set_clear(&wait_set_), "wait set");
  for (auto &subscription : subscriptions_)
    rcl_.check(rcl_.rcl_wait_set_add_subscription(&wait_set_, subscription.get(), nullptr),
               "wait set");
  const rcl_ret_t code = rcl_.rcl_wait(&wait_set_, myelin::left_ns(until_ns));
  if (code == RCL_RET_TIMEOUT)
    return false;
  rcl_.check(code, "rcl_wait");
  ready_.clear();
  for (std::size_t at = 0; at < wait_set_.size_of_subscriptions; at++)
    if (wait_set_.subscriptions[at] != nullptr)
      ready_.push_back(subscriptions_[at].get());
  return !ready_.empty();
}

bool RclLink::take(const void *&message, std::size_t &bytes)
{
  if (!take_any())
    return false;
  message = taken_.data().data();
  bytes = taken_.data().size();
  return true;
}

bool RclLink::take_any()
{
  if (subscriptions_.size() == 1)
    return take_from(*subscriptions_.front());
  for (; !ready_.empty(); ready_.pop_back())
    if (take_from(*ready_.back()))
      return true;
  return false;
}

bool RclLink::take_from(rcl_subscription_t &subscription)
{
  const rcl_ret_t code = rcl_.rcl_take(&subscription, taken_.object(), nullptr, nullptr);
  if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
    rcl_.rcutils_reset_error();
    return false;
  }
  rcl_.check(code, "taking");
  return true;
}

} // namespace

std::unique_ptr<myelin::Link> myelin::open_rcl(const myelin_bench_prepare &prepare)
{
  return std::make_unique<RclLink>(prepare);
}
