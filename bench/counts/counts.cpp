// As src/main.rs, in C++.
#include "counts.h"
#include <array>
#include <atomic>
#include <chrono>
#include <myelin.hpp>
#include <optional>
#include <thread>

#include <sys/syscall.h>

using namespace std::chrono_literals;
using Small = std::array<std::uint8_t, 64>;
using Large = std::array<std::uint8_t, 4096>;

template <class T> struct Pair {
  myelin::Publisher<T> publisher;
  myelin::Subscriber<T> subscriber;
  Pair(const myelin::Node &from, const myelin::Node &to, const std::string &name)
      : publisher(from.topic<T>(name).publisher().value()), subscriber(to.topic<T>(name).subscriber().value()) {
    if (!publisher.wait_for_match(1, 30s).value() || !subscriber.wait_for_match(1, 30s).value()) _exit(2);
  }
};

static Small seven;
static std::chrono::nanoseconds call_limit = 30s; // the first call of a service may take a moment
static std::optional<Pair<Small>> small;
static std::optional<Pair<Large>> large;
static std::optional<myelin::WaitSet> set;
static std::optional<myelin::Client<Small, Small>> client;
static std::optional<myelin::Server<Small, Small>> server;

static void publish() { small->publisher.publish_copy(seven).value(); }

static void take() {
  auto sample = small->subscriber.take().value();
  if (!sample || (**sample)[63] != 7) _exit(2);
}

static void publish_take() {
  publish();
  take();
}

static void lend() {
  auto loan = large->publisher.loan().value();
  (*loan)[0] = 7;
  std::move(loan).publish().value();
}

static void lend_take() {
  lend();
  auto sample = large->subscriber.take().value();
  if (!sample || (**sample)[0] != 7) _exit(2);
}

static void turn() {
  publish();
  if (set->wait(30s).value().size() != 1) _exit(2);
  take();
}

static void call() {
  auto pending = client->send(seven).value();
  server->receive(call_limit).value()->reply(seven).value();
  if (!pending.receive(call_limit).value()) _exit(2);
}

template <class F> void warm_up(F operation) {
  for (int time = 0; time < WARM_UP; time++) operation();
}

int main() {
  seven.fill(7);
  auto from = myelin::Node::open("from").value(), to = myelin::Node::open("to").value();
  small.emplace(from, to, "copy");
  warm_up(publish);
  COUNTED(publish_copy, publish, EACH);
  while (small->subscriber.take().value()) continue;
  warm_up(publish_take);
  COUNTED(publish_copy_take, publish_take, EACH);

  large.emplace(from, to, "loan");
  lend();
  if (!large->subscriber.receive(30s).value()) return 2; // it has mapped the memory
  warm_up(lend);
  COUNTED(loan_publish, lend, EACH);
  while (large->subscriber.take().value()) continue;
  warm_up(lend_take);
  COUNTED(loan_publish_take, lend_take, EACH);

  set.emplace(to.wait_set().value());
  std::vector<Pair<Small>> others;
  for (std::uint64_t number = 0; number < 10; number++) {
    others.emplace_back(from, to, "set/" + std::to_string(number));
    set->add(others.back().subscriber, number).value();
  }
  small.emplace(std::move(others.back()));
  others.pop_back();
  warm_up(turn);
  COUNTED(wait_set_turn, turn, EACH);

  int calls = 0;
  small.emplace(from, from, "callback");
  auto callback = std::move(small->subscriber).on_sample([&](const auto &sample) { calls += (*sample)[63] == 7; }).value();
  warm_up(publish);
  COUNTED(callback, publish, EACH);
  if (calls != WARM_UP + EACH) return 2;

  server.emplace(from.server<Small, Small>("service").value());
  client.emplace(to.client<Small, Small>("service").value());
  while (!client->wait_for_service(1ms).value())
    if (server->receive(0ns).value()) return 2;
  call();
  call_limit = 0ns;
  warm_up(call);
  COUNTED(service_call, call, EACH);

  small.emplace(from, to, "wake");
  std::atomic<int> thread{0}, taken{0};
  std::thread sleeper([&] {
    thread = int(syscall(SYS_gettid));
    for (int wake = 0; wake < WAKES; wake++) {
      if (!small->subscriber.receive(30s).value()) _exit(2);
      taken++;
    }
  });
  for (int wake = 0; wake < WAKES; wake++) {
    while (taken < wake || !sleeps(thread)) std::this_thread::sleep_for(1ms);
    COUNTED(wake, publish, 1);
  }
  sleeper.join();
}
