// Tests loaned messages through rmw.h: written and read in place in shared memory.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "side.hpp"
#include "test_msgs/msg/basic_types.hpp"

namespace {

using Message = test_msgs::msg::BasicTypes;

/// Returns the line of /proc/self/maps that contains an address.
std::string mapping(const void *address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::FILE *maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t begin, end;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 && begin <= at && at < end) break;
    line[0] = 0;
  }
  std::fclose(maps);
  return line;
}

void wait_for(rmw_wait_set_t *set, rmw_subscription_t *subscription) {
  void *ready = subscription->data;
  rmw_subscriptions_t subscriptions{1, &ready};
  const rmw_time_t limit{60, 0};
  OK(rmw_wait(&subscriptions, nullptr, nullptr, nullptr, nullptr, set, &limit));
  CHECK(ready == subscription->data);
}

}  // namespace

int main() {
  Side talker("talker"), listener("listener");
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  const auto publisher_options = rmw_get_default_publisher_options();
  const auto subscription_options = rmw_get_default_subscription_options();
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  rmw_publisher_t *publisher =
      rmw_create_publisher(talker.node, type, "/loaned", &qos, &publisher_options);
  rmw_subscription_t *subscription =
      rmw_create_subscription(listener.node, type, "/loaned", &qos, &subscription_options);
  CHECK(publisher != nullptr && publisher->can_loan_messages);
  CHECK(subscription != nullptr && subscription->can_loan_messages);
  rmw_wait_set_t *set = rmw_create_wait_set(&listener.context, 1);
  CHECK(set != nullptr);

  // More rounds than there are loans at once: returned memory can be lent again.
  for (int64_t round = 0; round < 300; ++round) {
    void *loan = nullptr;
    OK(rmw_borrow_loaned_message(publisher, type, &loan));
    CHECK(mapping(loan).find("myelin-slots") != std::string::npos);
    if (round % 3 == 0) {
      OK(rmw_return_loaned_message_from_publisher(publisher, loan));
      continue;
    }
    auto &message = *new (loan) Message;
    message.int64_value = round;
    message.float64_value = 0.5;
    OK(rmw_publish_loaned_message(publisher, loan, nullptr));
    CHECK(rmw_publish_loaned_message(publisher, loan, nullptr) != RMW_RET_OK);
    rmw_reset_error();

    wait_for(set, subscription);
    void *taken = nullptr;
    bool is_taken = false;
    rmw_message_info_t info = rmw_get_zero_initialized_message_info();
    OK(rmw_take_loaned_message_with_info(subscription, &taken, &is_taken, &info, nullptr));
    CHECK(is_taken);
    const std::string where = mapping(taken);
    CHECK(where.find("myelin-slots") != std::string::npos && where.find(" r--") != std::string::npos);
    const auto &read = *static_cast<const Message *>(taken);
    CHECK(read.int64_value == round && read.float64_value == 0.5);
    CHECK(info.source_timestamp > 0 && info.received_timestamp >= info.source_timestamp);
    OK(rmw_return_loaned_message_from_subscription(subscription, taken));
  }

  OK(rmw_destroy_wait_set(set));
  OK(rmw_destroy_subscription(listener.node, subscription));
  OK(rmw_destroy_publisher(talker.node, publisher));
  std::puts("passed");
}
