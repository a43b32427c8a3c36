// A loan, a sample and a callback that a child of fork inherits: they end there by themselves, as at the end of any
// scope, without harm to the parent or to what the child maps itself.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "check.h"
#include "myelin.hpp"

using namespace std::chrono_literals;

static constexpr auto watchdog = 60s;
static constexpr std::size_t count = 25'000;

template <class T> static bool is_all(const T &numbers, std::uint32_t number) {
  return std::all_of(numbers.begin(), numbers.end(), [&](std::uint32_t each) { return each == number; });
}

struct Ends {
  explicit Ends(const char *name)
      : node(myelin::Node::open(name).value()),
        topic(node.topic<myelin::Slice<std::uint32_t>>(name)),
        publisher(topic.publisher().value()),
        subscriber(topic.subscriber().value()) {
    CHECK(publisher.wait_for_match(1, watchdog).value());
  }
  auto pass(std::uint32_t number) {
    auto loan = publisher.loan(count).value();
    std::fill(loan.begin(), loan.end(), number);
    CHECK(std::move(loan).publish());
    return std::move(subscriber.receive(watchdog).value().value());
  }
  myelin::Node node;
  myelin::Topic<myelin::Slice<std::uint32_t>> topic;
  myelin::Publisher<myelin::Slice<std::uint32_t>> publisher;
  myelin::Subscriber<myelin::Slice<std::uint32_t>> subscriber;
};

static bool in_child(Ends &ends) {
  auto sample = ends.pass(7);
  auto loan = ends.publisher.loan(count).value(), second = ends.publisher.loan(count).value();
  auto called = ends.topic.subscriber().value();
  auto callback = std::move(called).on_sample([](const auto &) {}).value();
  std::fill(loan.begin(), loan.end(), 1);
  const pid_t child = fork();
  if (child == 0) {
    Ends own("child");
    auto own_sample = own.pass(3);
    CHECK(is_all(sample, 0) && is_all(loan, 0));
    std::fill(loan.begin(), loan.end(), 9);
    CHECK(is_all(own_sample, 3));
    auto published = std::move(loan).publish();
    CHECK(!published && published.error().code() == MYELIN_ERROR_FORKED);
    return true;  // all of it ends
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(is_all(sample, 7) && is_all(loan, 1));
  CHECK(std::move(loan).publish());
  return false;
}

int main() {
  Ends ends("parent");
  if (in_child(ends)) return 0;
  CHECK(is_all(ends.subscriber.receive(watchdog).value().value(), 1));
  puts("all forks");
}
