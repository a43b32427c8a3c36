// A queue of jobs; none may be lost. It is reliable, so the publisher waits for a slow worker.
//
// c++ -std=c++17 queue.cpp -lmyelin -pthread -o queue; in one terminal `./queue subscribe`, in
// another `./queue publish`. Both end by themselves.
#include <cstdint>
#include <iostream>
#include <myelin.hpp>
#include <string>

using namespace std::chrono_literals;

constexpr std::uint64_t jobs = 100'000;

/// Both sides must be reliable; each chooses how long the queue is and how long to wait.
static auto topic(const myelin::Node &node) {
  return node.topic<std::uint64_t>("jobs").depth(64).reliable_or_fail(10s);
}

static void publish(myelin::Node node) {
  auto publisher = topic(node).publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `queue subscribe` within 30 s\n";
    return;
  }
  for (std::uint64_t job = 0; job < jobs; job++)
    publisher.publish_copy(job).value(); // waits while the worker is 64 jobs behind
  std::cout << "published " << jobs << " jobs\n";
}

static void subscribe(myelin::Node node) {
  auto subscriber = topic(node).subscriber().value();
  std::uint64_t sum = 0;
  for (std::uint64_t done = 0; done < jobs; done++) {
    auto job = subscriber.receive(30s).value();
    if (!job) {
      std::cout << "nothing came for 30 s after " << done << " jobs\n";
      return;
    }
    sum += **job;
  }
  std::cout << "did " << jobs << " jobs, lost " << subscriber.lost() << ", sum " << sum << '\n';
  for (const auto &event : subscriber.events().value())
    if (event.kind == MYELIN_EVENT_UNMATCHED && event.died)
      std::cout << "the planner, process " << event.pid << ", has died\n";
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(myelin::Node::open("planner").value()), 0;
  if (role == "subscribe") return subscribe(myelin::Node::open("worker").value()), 0;
  std::cerr << "usage: queue publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
