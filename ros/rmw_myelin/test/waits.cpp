// Tests through rmw.h that waits, callbacks and publishes do not block other threads.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "rcutils/logging.h"
#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "rosidl_typesupport_cpp/service_type_support.hpp"
#include "side.hpp"
#include "test_msgs/msg/basic_types.hpp"
#include "test_msgs/srv/basic_types.hpp"

namespace {

using Message = test_msgs::msg::BasicTypes;
using Call = test_msgs::srv::BasicTypes;
using namespace std::chrono_literals;

/// The limit is a watchdog: no step takes nearly as long.
void wait_until(const char *what, const std::function<bool()> &holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!holds()) {
    check(std::chrono::steady_clock::now() < end, what);
    std::this_thread::sleep_for(1ms);
  }
}

rmw_publisher_t *publisher(Side &side, const char *topic, const rmw_qos_profile_t &qos) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  const auto options = rmw_get_default_publisher_options();
  rmw_publisher_t *made = rmw_create_publisher(side.node, type, topic, &qos, &options);
  CHECK(made != nullptr);
  return made;
}

rmw_subscription_t *subscription(Side &side, const char *topic, const rmw_qos_profile_t &qos) {
  const auto *type = rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  const auto options = rmw_get_default_subscription_options();
  rmw_subscription_t *made = rmw_create_subscription(side.node, type, topic, &qos, &options);
  CHECK(made != nullptr);
  return made;
}

size_t matched(rmw_publisher_t *publisher) {
  size_t count = 0;
  OK(rmw_publisher_count_matched_subscriptions(publisher, &count));
  return count;
}

bool take(rmw_subscription_t *subscription, Message &message) {
  bool is_taken = false;
  OK(rmw_take(subscription, &message, &is_taken, nullptr));
  return is_taken;
}

/// Waits for a subscription, or for nothing if it is NULL. Returns whether the subscription is ready.
bool wait(rmw_wait_set_t *set, rmw_subscription_t *subscription, const rmw_time_t *limit) {
  void *ready = subscription == nullptr ? nullptr : subscription->data;
  rmw_subscriptions_t subscriptions{subscription == nullptr ? 0U : 1U, &ready};
  const rmw_ret_t waited = rmw_wait(&subscriptions, nullptr, nullptr, nullptr, nullptr, set, limit);
  check(waited == RMW_RET_OK || waited == RMW_RET_TIMEOUT, "the wait succeeds or times out");
  return ready != nullptr;
}

/// A shutdown ends the wait in progress, and all later waits.
void a_shutdown_ends_waits() {
  Side side("shut_down");
  rmw_wait_set_t *set = rmw_create_wait_set(&side.context, 0);
  std::atomic<int> waits{0};
  std::thread waiter([&] {
    for (; waits < 3; ++waits) wait(set, nullptr, nullptr);
  });
  std::this_thread::sleep_for(10ms);
  CHECK(waits == 0);
  OK(rmw_shutdown(&side.context));
  wait_until("the waits end", [&] { return waits == 3; });
  waiter.join();
  OK(rmw_destroy_wait_set(set));
}

/// Two threads wait for one subscription, each with its own wait set.
void two_wait_sets_wait_for_one_subscription(Side &talker, Side &listener) {
  rmw_publisher_t *out = publisher(talker, "/two", rmw_qos_profile_default);
  rmw_subscription_t *in = subscription(listener, "/two", rmw_qos_profile_default);
  std::atomic<int> taken{0}, waits[2] = {{0}, {0}};
  std::atomic<bool> is_over{false};
  const auto wait_and_take = [&](int which) {
    rmw_wait_set_t *set = rmw_create_wait_set(&listener.context, 0);
    Message message;
    while (!is_over) {
      if (wait(set, in, nullptr) && take(in, message)) ++taken;
      ++waits[which];
    }
    OK(rmw_destroy_wait_set(set));
  };
  std::thread one(wait_and_take, 0), other(wait_and_take, 1);
  wait_until("they match", [&] { return matched(out) == 1; });
  Message message;
  int sent = 0;
  // Until both threads have returned from a wait; each message wakes at least one.
  while (sent < 50 || waits[0] == 0 || waits[1] == 0) {
    OK(rmw_publish(out, &message, nullptr));
    ++sent;
    wait_until("the message is taken", [&] { return taken == sent; });
  }
  is_over = true;
  OK(rmw_shutdown(&listener.context));
  one.join();
  other.join();
  OK(rmw_destroy_subscription(listener.node, in));
  OK(rmw_destroy_publisher(talker.node, out));
}

/// The data of a callback.
struct Called {
  rmw_subscription_t *subscription;
  rmw_event_t event = rmw_get_zero_initialized_event();
  std::atomic<int> calls{0};
  std::atomic<int> others{0};
};

/// Callbacks of messages and of events unset or replace themselves, and use their own entity.
void callbacks_replace_themselves(Side &talker, Side &listener) {
  rmw_publisher_t *out = publisher(talker, "/called", rmw_qos_profile_default);
  Called called{subscription(listener, "/called", rmw_qos_profile_default)};
  wait_until("they match", [&] { return matched(out) == 1; });
  const auto unset = [](const void *data, size_t) {
    auto &own = *static_cast<Called *>(const_cast<void *>(data));
    size_t count = 0;
    OK(rmw_subscription_count_matched_publishers(own.subscription, &count));
    OK(rmw_subscription_set_on_new_message_callback(own.subscription, nullptr, nullptr));
    ++own.calls;
  };
  const auto replace = [](const void *data, size_t) {
    auto &own = *static_cast<Called *>(const_cast<void *>(data));
    const auto other = [](const void *data, size_t) { ++static_cast<Called *>(const_cast<void *>(data))->others; };
    OK(rmw_subscription_set_on_new_message_callback(own.subscription, other, data));
    ++own.calls;
  };
  Message message;
  for (int round = 1; round <= 10; ++round) {
    OK(rmw_subscription_set_on_new_message_callback(called.subscription, unset, &called));
    OK(rmw_publish(out, &message, nullptr));
    wait_until("the callback is called", [&] { return called.calls == round; });
    while (take(called.subscription, message)) {
    }
  }
  OK(rmw_subscription_set_on_new_message_callback(called.subscription, replace, &called));
  OK(rmw_publish(out, &message, nullptr));
  wait_until("the callback is called", [&] { return called.calls == 11; });
  OK(rmw_publish(out, &message, nullptr));
  wait_until("the other callback is called", [&] { return called.others > 0; });
  CHECK(called.calls == 11);

#if __has_include("rmw/events_statuses/matched.h")
  // The graph's thread reports a match. The callback creates an endpoint on this thread.
  OK(rmw_subscription_event_init(&called.event, called.subscription, RMW_EVENT_SUBSCRIPTION_MATCHED));
  static Side *side = &listener;
  const auto unset_event = [](const void *data, size_t) {
    auto &own = *static_cast<Called *>(const_cast<void *>(data));
    size_t count = 0;
    OK(rmw_subscription_count_matched_publishers(own.subscription, &count));
    OK(rmw_event_set_callback(&own.event, nullptr, nullptr));
    OK(rmw_destroy_publisher(side->node, publisher(*side, "/other", rmw_qos_profile_default)));
    ++own.calls;
  };
  rmw_matched_status_t status;
  bool is_taken = false;
  OK(rmw_take_event(&called.event, &status, &is_taken));
  OK(rmw_event_set_callback(&called.event, unset_event, &called));
  rmw_publisher_t *second = publisher(talker, "/called", rmw_qos_profile_default);
  wait_until("the event's callback is called", [&] { return called.calls == 12; });
  OK(rmw_destroy_publisher(talker.node, second));
  OK(rmw_event_fini(&called.event));
#endif
  OK(rmw_destroy_subscription(listener.node, called.subscription));
  OK(rmw_destroy_publisher(talker.node, out));
}

/// Unsetting a callback waits until a call of it in another thread has returned.
void unset_waits_for_a_running_callback(Side &talker, Side &listener) {
  rmw_publisher_t *out = publisher(talker, "/running", rmw_qos_profile_default);
  rmw_subscription_t *in = subscription(listener, "/running", rmw_qos_profile_default);
  wait_until("they match", [&] { return matched(out) == 1; });
  static std::atomic<int> begun{0}, ended{0};
  const auto slow = [](const void *, size_t) {
    ++begun;
    std::this_thread::sleep_for(30ms);
    ++ended;
  };
  OK(rmw_subscription_set_on_new_message_callback(in, slow, nullptr));
  Message message;
  OK(rmw_publish(out, &message, nullptr));
  wait_until("the callback is called", [&] { return begun == 1; });
  OK(rmw_subscription_set_on_new_message_callback(in, nullptr, nullptr));
  CHECK(ended == begun);
  OK(rmw_destroy_subscription(listener.node, in));
  OK(rmw_destroy_publisher(talker.node, out));
}

/// A publish waits for a subscription with `KEEP_ALL` that takes nothing. Meanwhile its publisher can be queried, and
/// other publishers can be created.
void a_blocked_publish_does_not_block_others(Side &talker, Side &listener) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  rmw_publisher_t *out = publisher(talker, "/all", qos);
  rmw_subscription_t *in = subscription(listener, "/all", qos);
  wait_until("they match", [&] { return matched(out) == 1; });
  const int kept = 5000;
  Message message;
  bool is_free = false;
  // The machine may suspend this thread for as long as the publish waits. Then try again.
  for (int attempt = 0; attempt < 20 && !is_free; ++attempt) {
    std::atomic<int> published{0};
    std::thread other([&] {
      for (; published <= kept; ++published) OK(rmw_publish(out, &message, nullptr));
    });
    wait_until("all but one are published", [&] { return published >= kept; });
    std::this_thread::sleep_for(5ms);
    rmw_publisher_t *another = publisher(talker, "/another", rmw_qos_profile_default);
    CHECK(matched(out) == 1);
    std::this_thread::sleep_for(5ms);  // so that a publish that has returned is counted
    is_free = published == kept;
    other.join();
    OK(rmw_destroy_publisher(talker.node, another));
    Message taken;
    while (take(in, taken)) {
    }
  }
  CHECK(is_free);
  OK(rmw_destroy_subscription(listener.node, in));
  OK(rmw_destroy_publisher(talker.node, out));
}

struct Server {
  rmw_service_t *service;
  /// Answers all pending requests. Returns their number.
  int answer() {
    int count = 0;
    for (bool is_taken = true; is_taken;) {
      rmw_service_info_t info;
      Call::Request request;
      OK(rmw_take_request(service, &info, &request, &is_taken));
      if (!is_taken) break;
      Call::Response response;
      response.int32_value = request.int32_value;
      OK(rmw_send_response(service, &info.request_id, &response));
      ++count;
    }
    return count;
  }
};

/// Settings of a service whose queues hold all requests of a test.
rmw_qos_profile_t deep() {
  rmw_qos_profile_t qos = rmw_qos_profile_services_default;
  qos.depth = 500;
  return qos;
}

rmw_client_t *client(Side &side, const char *name) {
  const auto *type = rosidl_typesupport_cpp::get_service_type_support_handle<Call>();
  const rmw_qos_profile_t qos = deep();
  rmw_client_t *made = rmw_create_client(side.node, type, name, &qos);
  CHECK(made != nullptr);
  return made;
}

Server service(Side &side, const char *name) {
  const auto *type = rosidl_typesupport_cpp::get_service_type_support_handle<Call>();
  const rmw_qos_profile_t qos = deep();
  Server made{rmw_create_service(side.node, type, name, &qos)};
  CHECK(made.service != nullptr);
  return made;
}

bool is_available(Side &side, rmw_client_t *client) {
  bool is_available = false;
  OK(rmw_service_server_is_available(side.node, client, &is_available));
  return is_available;
}

void ask(rmw_client_t *client, int number) {
  Call::Request request;
  request.int32_value = number;
  int64_t sequence;
  OK(rmw_send_request(client, &request, &sequence));
}

/// Takes the next reply. Returns -1 if there is none.
int reply(rmw_client_t *client) {
  rmw_service_info_t info;
  Call::Response response;
  bool is_taken = false;
  OK(rmw_take_response(client, &info, &response, &is_taken));
  return is_taken ? response.int32_value : -1;
}

/// A client that does not wait still gets its reply, however many replies other clients get meanwhile. The service's
/// name is as long as ROS 2 allows.
void replies_to_others_do_not_push_out_a_reply(Side &talker, Side &listener) {
  const std::string longest = "/" + std::string(246, 'n');
  Server server = service(talker, longest.c_str());
  rmw_client_t *slow = client(listener, longest.c_str());
  rmw_client_t *quick[3];
  for (rmw_client_t *&each : quick) each = client(listener, longest.c_str());
  wait_until("the service is available", [&] { return is_available(listener, slow); });
  ask(slow, 7);
  for (rmw_client_t *each : quick) {
    wait_until("the service is available", [&] { return is_available(listener, each); });
    for (int number = 0; number < 400; ++number) ask(each, number);
  }
  // All at once, while no client takes anything.
  int answered = 0;
  wait_until("all requests are answered", [&] { return (answered += server.answer()) == 1 + 3 * 400; });
  wait_until("the reply arrives", [&] { return reply(slow) == 7; });
  CHECK(reply(slow) == -1);
  for (rmw_client_t *each : quick) {
    for (int number = 0; number < 400; ++number) {
      wait_until("the replies to the others arrive", [&] { return reply(each) == number; });
    }
    CHECK(reply(each) == -1);
    OK(rmw_destroy_client(listener.node, each));
  }
  OK(rmw_destroy_client(listener.node, slow));
  OK(rmw_destroy_service(talker.node, server.service));
}

/// A client has a topic for its replies as soon as the service is available, also after a restart of the server. A
/// client that has gone does not delay replies to others.
void clients_and_servers_come_and_go(Side &talker, Side &listener) {
  Server server = service(talker, "/anew");
  rmw_client_t *stays = client(listener, "/anew");
  for (int round = 0; round < 20; ++round) {
    rmw_client_t *goes = client(listener, "/anew");
    for (rmw_client_t *each : {stays, goes}) {
      wait_until("the service is available", [&] { return is_available(listener, each); });
      ask(each, round);
      wait_until("the request is answered", [&] { return server.answer() == 1; });
      wait_until("the reply arrives", [&] { return reply(each) == round; });
    }
    // The second client goes before its request is answered.
    ask(goes, -2);
    ask(stays, round);
    OK(rmw_destroy_client(listener.node, goes));
    int answered = 0;
    wait_until("both requests are answered", [&] { return (answered += server.answer()) == 2; });
    wait_until("the reply arrives", [&] { return reply(stays) == round; });
    OK(rmw_destroy_service(talker.node, server.service));
    wait_until("the client notices that the server has gone", [&] { return !is_available(listener, stays); });
    server = service(talker, "/anew");
  }
  // A request that is sent before the server has noticed the client.
  for (int round = 0; round < 20; ++round) {
    rmw_client_t *at_once = client(listener, "/anew");
    ask(at_once, round);
    wait_until("the request is answered", [&] { return server.answer() == 1; });
    wait_until("the reply arrives", [&] { return reply(at_once) == round; });
    OK(rmw_destroy_client(listener.node, at_once));
  }
  OK(rmw_destroy_client(listener.node, stays));
  OK(rmw_destroy_service(talker.node, server.service));
}

/// A client that requests reliable replies does not match a best-effort server; the service is not available to it.
void a_server_that_offers_less_is_not_available(Side &talker, Side &listener) {
  const auto *type = rosidl_typesupport_cpp::get_service_type_support_handle<Call>();
  rmw_qos_profile_t less = deep();
  less.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  Server server{rmw_create_service(talker.node, type, "/less", &less)};
  rmw_client_t *reliable = client(listener, "/less");
  rmw_client_t *other = rmw_create_client(listener.node, type, "/less", &less);
  wait_until("the service is available to the other client", [&] { return is_available(listener, other); });
  CHECK(!is_available(listener, reliable));
  OK(rmw_destroy_client(listener.node, reliable));
  OK(rmw_destroy_client(listener.node, other));
  OK(rmw_destroy_service(talker.node, server.service));
}

/// A subscription with `KEEP_ALL` and a callback loses nothing, however much is taken ahead for it.
void keep_all_keeps_all_that_is_taken_ahead(Side &talker, Side &listener) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  rmw_publisher_t *out = publisher(talker, "/ahead", qos);
  rmw_subscription_t *in = subscription(listener, "/ahead", qos);
  wait_until("they match", [&] { return matched(out) == 1; });
  static std::atomic<int> called{0};
  const auto count = [](const void *, size_t times) { called += static_cast<int>(times); };
  OK(rmw_subscription_set_on_new_message_callback(in, count, nullptr));
  const int published = 8000;
  Message message;
  for (int number = 0; number < published; ++number) {
    message.int32_value = number;
    OK(rmw_publish(out, &message, nullptr));
    // Before the publisher's queue is full.
    if (number == 4000) wait_until("the callback has announced more than 4,000 messages", [] { return called > 4000; });
  }
  std::this_thread::sleep_for(20ms);  // so that a listener that takes more than it can keep has done so
  // As an executor does: takes as many messages as the callback has announced.
  for (int next = 0; next < published; ++next) {
    wait_until("the callback announces the next message", [&] { return called > next; });
    CHECK(take(in, message) && message.int32_value == next);
  }
  CHECK(!take(in, message) && called == published);
  OK(rmw_destroy_subscription(listener.node, in));
  OK(rmw_destroy_publisher(talker.node, out));
}

/// Lets another thread run after every hundredth look in vain. Two threads that look for each other's work on one CPU
/// would otherwise spend a time slice of the kernel on each look of the other.
void look_again(int &looks) {
  if (++looks % 100 == 0) std::this_thread::yield();
}

/// A guard condition may be destroyed as soon as a wait has reported it, even if the call that triggers it has not
/// returned yet.
void a_guard_condition_is_destroyed_while_it_is_triggered(Side &side) {
  rmw_wait_set_t *set = rmw_create_wait_set(&side.context, 0);
  std::atomic<rmw_guard_condition_t *> next{nullptr};
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    for (int looks = 0; !is_over; look_again(looks)) {
      if (rmw_guard_condition_t *condition = next.exchange(nullptr)) OK(rmw_trigger_guard_condition(condition));
    }
  });
  const rmw_time_t at_once{0, 0};
  for (int round = 0; round < 20'000; ++round) {
    rmw_guard_condition_t *condition = rmw_create_guard_condition(&side.context);
    // As in rcl: the handle outlives the call that triggers.
    rmw_guard_condition_t own = *condition;
    next = &own;
    const auto end = std::chrono::steady_clock::now() + 60s;
    int looks = 0;
    for (void *ready = nullptr; ready == nullptr; look_again(looks)) {
      ready = condition->data;
      rmw_guard_conditions_t conditions{1, &ready};
      const rmw_ret_t waited = rmw_wait(nullptr, &conditions, nullptr, nullptr, nullptr, set, &at_once);
      check(waited == RMW_RET_OK || waited == RMW_RET_TIMEOUT, "the wait succeeds or times out");
      check(std::chrono::steady_clock::now() < end, "the guard condition is triggered");
    }
    OK(rmw_destroy_guard_condition(condition));
  }
  is_over = true;
  other.join();
  OK(rmw_destroy_wait_set(set));
}

/// Whether a thread of this process sleeps.
bool is_asleep(int thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  std::FILE *stat = std::fopen(path.c_str(), "r");
  char state = 0;
  const bool is_read = stat != nullptr && std::fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
  if (stat != nullptr) std::fclose(stat);
  return is_read && state == 'S';
}

/// An object that is destroyed during a wait for it is not ready.
void a_destroyed_object_is_not_ready(Side &side) {
  rmw_subscription_t *in = subscription(side, "/gone", rmw_qos_profile_default);
  // From now on the listener's thread takes its samples.
  OK(rmw_subscription_set_on_new_message_callback(in, [](const void *, size_t) {}, nullptr));
  rmw_guard_condition_t *gone = rmw_create_guard_condition(&side.context);
  rmw_guard_condition_t *stays = rmw_create_guard_condition(&side.context);
  rmw_wait_set_t *set = rmw_create_wait_set(&side.context, 0);
  void *readers[] = {in->data};
  void *triggers[] = {gone->data, stays->data};
  rmw_subscriptions_t subscriptions{1, readers};
  rmw_guard_conditions_t conditions{2, triggers};
  std::atomic<bool> is_over{false};
  std::atomic<int> thread{0};
  std::thread waiter([&] {
    thread = static_cast<int>(syscall(SYS_gettid));
    OK(rmw_wait(&subscriptions, &conditions, nullptr, nullptr, nullptr, set, nullptr));
    is_over = true;
  });
  wait_until("the thread waits", [&] { return thread != 0 && is_asleep(thread); });
  OK(rmw_destroy_subscription(side.node, in));
  OK(rmw_destroy_guard_condition(gone));
  CHECK(!is_over);
  OK(rmw_trigger_guard_condition(stays));
  waiter.join();
  CHECK(readers[0] == nullptr && triggers[0] == nullptr && triggers[1] != nullptr);
  OK(rmw_destroy_guard_condition(stays));
  OK(rmw_destroy_wait_set(set));
}

/// A subscription of another version of the type, of which there are two.
template <uint8_t version>
rmw_subscription_t *other_version(Side &side, const char *topic) {
  // It outlives the subscription, which refers to it.
  static rosidl_message_type_support_t type =
      *rosidl_typesupport_cpp::get_message_type_support_handle<Message>();
  type.get_type_hash_func = [](const rosidl_message_type_support_t *) {
    static rosidl_type_hash_t hash{1, {version}};
    return static_cast<const rosidl_type_hash_t *>(&hash);
  };
  const auto options = rmw_get_default_subscription_options();
  rmw_subscription_t *made = rmw_create_subscription(side.node, &type, topic, &rmw_qos_profile_default, &options);
  CHECK(made != nullptr);
  return made;
}

/// A log handler uses the endpoint of the message: no lock is held during logging.
void a_log_handler_may_call_all_functions(Side &talker, Side &listener) {
  static std::atomic<rmw_publisher_t *> subject{nullptr};
  static std::atomic<rmw_subscription_t *> other{nullptr};
  static std::atomic<int> logged{0};
  static const rmw_node_t *listening = listener.node;
  const auto handler = [](const rcutils_log_location_t *, int, const char *, rcutils_time_point_value_t,
                          const char *format, va_list *arguments) {
    char text[1024];
    std::vsnprintf(text, sizeof text, format, *arguments);
    if (subject == nullptr || other == nullptr || std::strstr(text, "another version") == nullptr) return;
    CHECK(matched(subject) >= 1);
    size_t count = 0;
    OK(rmw_subscription_count_matched_publishers(other, &count));
    OK(rmw_count_publishers(listening, "/logged", &count));
    CHECK(count == 1);
    ++logged;
  };
  rcutils_logging_output_handler_t before = rcutils_logging_get_output_handler();
  rcutils_logging_set_output_handler(handler);
  subject = publisher(talker, "/logged", rmw_qos_profile_default);
  other = other_version<1>(listener, "/logged");
  // Now the handler has both entities to use.
  rmw_subscription_t *second = other_version<2>(listener, "/logged");
  wait_until("the warning is logged", [&] {
    matched(subject);
    return logged >= 1;
  });
  rcutils_logging_set_output_handler(before);
  OK(rmw_destroy_subscription(listener.node, second));
  OK(rmw_destroy_subscription(listener.node, other));
  OK(rmw_destroy_publisher(talker.node, subject));
}

}  // namespace

int main() {
  a_shutdown_ends_waits();
  Side talker("talker");
  {
    Side listener("listener");
    callbacks_replace_themselves(talker, listener);
    unset_waits_for_a_running_callback(talker, listener);
    a_blocked_publish_does_not_block_others(talker, listener);
    replies_to_others_do_not_push_out_a_reply(talker, listener);
    clients_and_servers_come_and_go(talker, listener);
    a_server_that_offers_less_is_not_available(talker, listener);
    keep_all_keeps_all_that_is_taken_ahead(talker, listener);
    a_guard_condition_is_destroyed_while_it_is_triggered(listener);
    a_destroyed_object_is_not_ready(listener);
    a_log_handler_may_call_all_functions(talker, listener);
  }
  Side listener("listener");
  two_wait_sets_wait_for_one_subscription(talker, listener);
  std::puts("passed");
}
