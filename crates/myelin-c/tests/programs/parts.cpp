// Each part of the C++ API once, and its errors for invalid arguments. The domain comes from the environment.
#include <atomic>
#include <string>
#include <future>
#include <thread>

#include "check.h"
#include "myelin.hpp"

using namespace std::chrono_literals;

namespace sensors {
struct Imu {
  std::uint64_t stamp_ns;
  double acceleration[3];
  float temperature;
  std::uint8_t _pad[4];
};
struct Frame {
  std::uint32_t width, height;
};
} // namespace sensors
using sensors::Frame;
using sensors::Imu;
MYELIN_STRUCT(sensors::Imu, stamp_ns, acceleration, temperature, _pad)
MYELIN_STRUCT(sensors::Frame, width, height)

static constexpr auto watchdog = 60s;

template <class T> struct Pair {
  myelin::Publisher<T> publisher;
  myelin::Subscriber<T> subscriber;
};

template <class T> Pair<T> pair(const myelin::Node &node, const char *name) {
  auto topic = node.topic<T>(name);
  Pair<T> made{topic.publisher().value(), topic.subscriber().value()};
  CHECK(made.publisher.wait_for_match(1, watchdog).value());
  return made;
}

static void values(const myelin::Node &node) {
  auto [publisher, subscriber] = pair<Imu>(node, "values");
  CHECK(publisher.publish_copy(Imu{7, {1, 2, 3}, 21.5f, {}}).value().sequence == 0);
  auto imu = subscriber.receive(watchdog).value();
  CHECK(imu && (*imu)->stamp_ns == 7 && (**imu).acceleration[2] == 3);
  auto loan = publisher.loan().value();
  *loan = Imu{8, {}, 0, {}};
  auto moved = std::move(loan);
  moved->temperature = 1;
  CHECK(std::move(moved).publish().value().sequence == 1);
  auto twice = std::move(moved).publish();
  CHECK(!twice && twice.error().code() == MYELIN_ERROR_LOAN);
  { auto discarded = publisher.loan().value(); }
  CHECK(subscriber.has_unread());
  auto second = subscriber.take().value();
  auto kept = second->clone().value();
  second.reset();
  CHECK(kept->stamp_ns == 8 && kept->temperature == 1);
  CHECK(!subscriber.take().value() && !subscriber.has_unread());
  CHECK(subscriber.lost() == 0 && subscriber.matched() == 1);
  CHECK(publisher.reserve(2) && publisher.matched() == 1);
  auto events = subscriber.events().value();
  CHECK(!events.empty() && events[0].kind == MYELIN_EVENT_MATCHED);
}

// The settings of a temporary topic make another topic, which a reference keeps.
static void settings(const myelin::Node &node) {
  const auto &kept = node.topic<Imu>("settings").depth(5).transient_local(4).deadline(2s).reliable(1s);
  auto named = node.topic<Imu>("settings");
  named.depth(5).transient_local(4);
  auto &same = named.reliable_or_fail(1s).deadline(2s);
  CHECK(&same == &named);
  const auto &bytes = node.topic<myelin::Bytes>("cdr").dds_name("other").dds_cdr("a::B").dds_type("c::D");
  auto publisher = kept.publisher().value();
  named.attribute("a", std::string("\0b", 2)).matching(MYELIN_MATCHING_REQUESTED_OFFERED);
  auto subscriber = named.subscriber().value();
  CHECK(bytes.subscriber());
  CHECK(publisher.wait_for_match(1, watchdog).value());
  for (const auto &endpoint : node.graph().value().endpoints)
    if (endpoint.topic == "settings") {
      CHECK(endpoint.depth == 5 && endpoint.transient_local == 4 && endpoint.is_reliable);
      CHECK(endpoint.deadline_ns == 2000000000 && endpoint.liveliness_ns == MYELIN_FOREVER);
      CHECK(endpoint.attributes.size() == !endpoint.is_publisher);
      if (!endpoint.is_publisher) CHECK(endpoint.attributes[0] == std::make_pair(std::string("a"), std::string("\0b", 2)));
    }
  CHECK(node.graph().value().nodes[0].language == "C++");
  CHECK(node.endpoint(publisher.endpoint()).value()->topic == "settings");
  CHECK(!node.endpoint(1).value());
  CHECK(node.graph_changes().value() >= 2);
  publisher.publish_copy({7, {1, 2, 3}, 21.5f, {}}).value();
  CHECK(subscriber.receive(watchdog).value().value()->acceleration[2] == 3);
  for (const auto &endpoint : node.graph_within(watchdog).value().endpoints)
    if (endpoint.topic == "settings") CHECK(endpoint.counters->published + endpoint.counters->taken == 1);
}

// Members that are none before they are opened.
static void later(const myelin::Node &node) {
  struct Driver {
    myelin::Node node;
    myelin::Publisher<std::uint64_t> publisher;
    myelin::Subscriber<std::uint64_t> subscriber;
    myelin::Callback callback;
    myelin::WaitSet set;
    myelin::GuardCondition guard;
    myelin::Client<std::uint64_t, std::uint64_t> client;
    myelin::Server<std::uint64_t, std::uint64_t> server;
  } driver;
  CHECK(!driver.publisher.get() && !driver.subscriber.get() && !driver.callback.thrown());
  CHECK(driver.publisher.matched() == 0 && driver.subscriber.lost() == 0 && driver.callback.calls() == 0);
  driver.guard.trigger();
  auto none = {
      driver.publisher.publish_copy(1).error().code(), driver.subscriber.take().error().code(),
      driver.set.wait(0s).error().code(),              driver.node.wait_set().error().code(),
      driver.client.call(1, 0s).error().code(),        driver.server.receive(0s).error().code(),
      driver.callback.error().error().code(),          driver.node.topic<int>("t").publisher().error().code(),
  };
  for (int code : none) CHECK(code == MYELIN_ERROR_HANDLE);
  driver.set = node.wait_set().value();
  driver.guard = driver.set.guard_condition(1).value();
  driver.publisher = node.topic<std::uint64_t>("later").publisher().value();
  driver.subscriber = node.topic<std::uint64_t>("later").subscriber().value();
  CHECK(driver.publisher.wait_for_match(1, watchdog).value());
  driver.callback = std::move(driver.subscriber).on_sample([&](const auto &) { driver.guard.trigger(); }).value();
  driver.publisher.publish_copy(1).value();
  CHECK(driver.set.wait(watchdog).value().size() == 1);
  driver.publisher = myelin::Publisher<std::uint64_t>(); // closed
  CHECK(!driver.publisher.get());
}

static void slices(const myelin::Node &node) {
  auto [publisher, subscriber] = pair<myelin::Slice<float>>(node, "slices");
  publisher.publish_copy(std::vector<float>{1, 2, 3}).value();
  auto three = subscriber.take().value().value();
  float sum = 0;
  for (float each : three) sum += each;
  CHECK(three.size() == 3 && sum == 6 && (*three).size() == 3);
  auto [text, texts] = pair<myelin::Bytes>(node, "text");
  text.publish_copy(std::string("hello")).value();
  auto hello = texts.take().value().value();
  CHECK(std::string(hello.begin(), hello.end()) == "hello");
  auto [camera, images] = pair<myelin::HeaderSlice<Frame, std::uint8_t>>(node, "images");
  auto image = camera.loan(6).value();
  image.header() = {3, 2};
  for (auto &pixel : image.slice()) pixel = 9;
  std::move(image).publish().value();
  auto shown = images.take().value().value();
  CHECK(shown.header().width == 3 && shown.slice().size() == 6 && shown.slice()[5] == 9);
}

static void callbacks(const myelin::Node &node) {
  auto [publisher, subscriber] = pair<std::uint64_t>(node, "callbacks");
  std::optional<myelin::Sample<std::uint64_t>> kept;
  auto callback = std::move(subscriber).on_sample([&](const myelin::Sample<std::uint64_t> &sample) {
    if (*sample == 1) throw std::runtime_error("odd");
    kept = sample.clone().value();
  }).value();
  for (std::uint64_t each : {0, 1, 2}) publisher.publish_copy(each).value();
  CHECK(callback.calls() == 3 && **kept == 2);
  CHECK(callback.thrown() == "odd" && !callback.thrown() && callback.error());
  auto closed = subscriber.take();
  CHECK(!closed && closed.error().code() == MYELIN_ERROR_HANDLE);
}

// Two threads publish, each to a topic whose function publishes to the other's, and looks at it.
static void crossing(const myelin::Node &node) {
  struct Side {
    Pair<std::uint64_t> ends;
    myelin::Publisher<std::uint64_t> to_other;
  };
  auto topics = {node.topic<std::uint64_t>("crossing a").depth(64), node.topic<std::uint64_t>("crossing b").depth(64)};
  auto [a, b] = std::pair(*topics.begin(), *(topics.begin() + 1));
  Side sides[] = {{{a.publisher().value(), a.subscriber().value()}, b.publisher().value()},
                  {{b.publisher().value(), b.subscriber().value()}, a.publisher().value()}};
  std::atomic<int> running = 0;
  std::vector<myelin::Callback> callbacks;
  for (Side &side : sides) {
    CHECK(side.ends.publisher.wait_for_match(1, watchdog).value());
    callbacks.push_back(std::move(side.ends.subscriber).on_sample([&](const myelin::Sample<std::uint64_t> &sample) {
      if (*sample != 0) return;
      for (running++; running < 2;) std::this_thread::yield(); // at the first call of each
      side.to_other.publish_copy(1).value();
      { auto discarded = side.to_other.loan().value(); }
      if (side.to_other.matched() != 1) throw std::logic_error("no match");
      side.ends.publisher.events().value();
      node.graph().value();
      CHECK(node.topic<std::uint64_t>("crossing c").publisher());
    }).value());
  }
  std::vector<std::thread> threads;
  for (Side &side : sides)
    threads.emplace_back([&] { for (int i = 0; i < 20; i++) side.ends.publisher.publish_copy(0).value(); });
  for (auto &thread : threads) thread.join();
  for (auto &callback : callbacks) {
    while (callback.calls() < 40) std::this_thread::yield();
    CHECK(!callback.thrown() && callback.lost() == 0);
  }
}

static void wait_sets(const myelin::Node &node) {
  auto [publisher, subscriber] = pair<std::uint64_t>(node, "sets");
  auto set = node.wait_set().value();
  set.add(subscriber, 1).value();
  auto guard = set.guard_condition(2).value();
  CHECK(set.set_wait(MYELIN_WAIT_BLOCK));
  CHECK((set.wait(0ns).value().size() == 0));
  publisher.publish_copy(5).value();
  auto ready = set.wait(watchdog).value();
  CHECK(ready.size() == 1 && ready[0] == 1);
  subscriber.take().value();
  std::thread other([&] { guard.trigger(); });
  std::uint64_t key;
  do key = set.wait(myelin::forever).value()[0];
  while (key != 2);
  other.join();
  auto again = set.add(subscriber, 1);
  CHECK(!again && again.error().code() == MYELIN_ERROR_SETTING);
  // Another thread waits meanwhile.
  set.remove(1).value();
  set.remove(2).value();
  std::promise<std::uint64_t> first;
  std::thread waits([&] {
    first.set_value(set.wait(myelin::forever).value()[0]);
    int code = MYELIN_OK;
    while (code == MYELIN_OK) {
      auto next = set.wait(myelin::forever);
      if (!next) code = next.error().code();
    }
    CHECK(code == MYELIN_ERROR_CLOSED || code == MYELIN_ERROR_HANDLE);
  });
  set.add(subscriber, 3).value();
  publisher.publish_copy(6).value();
  CHECK(first.get_future().get() == 3);
  subscriber.take().value();
  set.close().value();
  waits.join();
}

static void services(const myelin::Node &node) {
  auto server = node.server<Imu, myelin::Slice<std::uint32_t>>("service").value();
  auto serving = std::move(server).on_request([](auto request) {
    if (request->stamp_ns == 0) throw 5;
    auto reply = request.loan(request->stamp_ns).value();
    for (auto &each : reply) each = 4;
    std::move(reply).send().value();
  }).value();
  auto client = node.client<Imu, myelin::Slice<std::uint32_t>>("service").value();
  CHECK(client.set_wait(MYELIN_WAIT_BLOCK) && !client.set_wait(77));
  auto reply = client.call(Imu{3, {}, 0, {}}, watchdog).value();
  CHECK(reply.size() == 3 && reply[2] == 4);
  auto loan = client.loan().value();
  *loan = Imu{2, {}, 0, {}};
  auto call = std::move(loan).send().value();
  CHECK(call.receive(watchdog).value()->size() == 2);
  auto none = client.call(Imu{}, watchdog);
  CHECK(!none && none.error().code() == MYELIN_ERROR_NO_REPLY);
  // The request goes while the exception is on its way, so the client can know before it is caught.
  while (!serving.thrown()) std::this_thread::yield();
  CHECK(client.servers() == 1 && client.late() == 0);
  auto other = node.server<Imu, Imu>("other").value();
  CHECK(other.set_wait(MYELIN_WAIT_BLOCK) && other.clients() == 0);
}

static void graph_and_network(const myelin::Node &node) {
  auto before = myelin::now();
  auto [publisher, subscriber] = pair<Imu>(node, "graph");
  publisher.publish_copy(Imu{}).value();
  auto sample = subscriber.receive(watchdog).value().value();
  auto graph = node.graph().value();
  CHECK(graph.nodes.size() == 1 && graph.nodes[0].name == "parts" && before <= myelin::now());
  int found = 0;
  for (auto &each : graph.endpoints) {
    if (each.topic != "graph") continue;
    CHECK(each.type_name == "Imu" && each.type_hash == myelin::layout_hash<Imu>() && each.depth == 8);
    CHECK(!each.is_publisher || each.endpoint == sample.publisher());
    found++;
  }
  CHECK(found == 2 && graph.matches.size() >= 2 && graph.matches[0].reason.empty());
  CHECK(graph.matches[0].state == MYELIN_MATCH_MATCHED);
  auto network = node.network().value();
  CHECK(network.state == MYELIN_NETWORK_OFF && network.text.empty());
}

static void observers(const myelin::Node &node) {
  auto topic = node.topic<Imu>("observed");
  myelin::Observer<Imu> observer;
  CHECK(!observer.take());
  observer = topic.observer().value();
  auto publisher = topic.publisher().value();
  Imu imu{};
  imu.stamp_ns = 7;
  publisher.publish_copy(imu).value();
  CHECK(observer.wait(watchdog).value());
  auto seen = observer.take().value().value();
  CHECK(seen->stamp_ns == 7 && seen.sequence() == 0 && seen.overwritten_before() == 0);
  CHECK(seen.missing() == MYELIN_MISSING_NOTHING && seen.length() == sizeof(Imu));
  CHECK(seen.published_ns() == 0);
  publisher.publish_copy(imu).value();
  CHECK(observer.take_header().value()->sequence == 1);
  CHECK(!observer.take().value() && !observer.take_header().value());
  CHECK(publisher.matched() == 0);
  auto publishers = observer.publishers().value();
  CHECK(publishers.size() == 1 && publishers[0].seen == 2 && publishers[0].publisher == seen.publisher());
  CHECK(observer.interval() >= std::chrono::milliseconds(1));
  observer.interrupt();
  CHECK(!observer.wait(myelin::forever).value());
}

static void nonsense(const myelin::Node &node) {
  auto held = node.topic<Imu>("typed").publisher().value();
  auto wrong = node.topic<float[3]>("typed").subscriber();
  CHECK(!wrong && wrong.error().code() == MYELIN_ERROR_TYPE);
  CHECK(std::string(wrong.error().what()).find("carries Imu") != std::string::npos);
  try {
    node.topic<Imu>("").publisher().value();
    CHECK(!"a topic needs a name");
  } catch (const myelin::Error &error) {
    CHECK(error.code() == MYELIN_ERROR_SETTING);
  }
  // An object that was moved from is closed.
  auto moved = std::move(held);
  auto gone = held.publish_copy(Imu{});
  CHECK(!gone && gone.error().code() == MYELIN_ERROR_HANDLE && held.matched() == 0);
  CHECK(!held.loan() && !held.events() && !held.wait_for_match(1, 0ns));
  // A loan does not outlive its publisher.
  auto loan = moved.loan().value();
  { auto closed = std::move(moved); }
  auto late = std::move(loan).publish();
  CHECK(!late && late.error().code() == MYELIN_ERROR_HANDLE);
  auto bytes = node.topic<myelin::Bytes>("cdr").dds_cdr("test::Type").dds_name("rt/cdr");
  CHECK(bytes.publisher());
  myelin::NodeOptions options;
  options.group = "no such group";
  CHECK(!myelin::Node::open("x", options));
}

int main() {
  auto node = myelin::Node::open("parts").value();
  values(node);
  settings(node);
  later(node);
  slices(node);
  callbacks(node);
  crossing(node);
  wait_sets(node);
  services(node);
  observers(node);
  graph_and_network(node);
  nonsense(node);
  std::printf("all parts\n");
}
