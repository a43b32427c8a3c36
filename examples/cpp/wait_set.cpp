// One thread that waits for two topics, a timer and the end of another thread's work.
//
// c++ -std=c++17 wait_set.cpp -lmyelin -pthread -o wait_set; in one terminal `./wait_set subscribe`, in
// another `./wait_set publish`. Both end by themselves.
#include <array>
#include <cmath>
#include <iostream>
#include <myelin.hpp>
#include <string>
#include <thread>

using namespace std::chrono_literals;

constexpr int steps_max = 10;
using Two = std::array<double, 2>;
enum : std::uint64_t { WHEELS, GOALS, TICK, PLANNED };

static void publish(myelin::Node node) {
  auto wheels = node.topic<Two>("wheels").depth(steps_max).publisher().value();
  auto goals = node.topic<Two>("goals").publisher().value();
  if (!wheels.wait_for_match(1, 30s).value() || !goals.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `wait_set subscribe` within 30 s\n";
    return;
  }
  for (int step = 0; step < steps_max; step++)
    wheels.publish_copy(Two{double(step), step + 0.5}).value();
  goals.publish_copy(Two{3.0, 4.0}).value();
  std::cout << "published " << steps_max << " steps and a goal\n";
}

static void subscribe(myelin::Node node) {
  auto wheels = node.topic<Two>("wheels").depth(steps_max).subscriber().value();
  auto goals = node.topic<Two>("goals").subscriber().value();
  auto set = node.wait_set().value();
  set.add(wheels, WHEELS).value();
  set.add(goals, GOALS).value();
  set.timer(30s, TICK).value();
  auto planned = set.guard_condition(PLANNED).value();
  std::thread planner;
  int steps = 0;
  bool is_planned = false;
  while (steps < steps_max || !is_planned) {
    for (auto key : set.wait(myelin::forever).value()) {
      if (key == WHEELS) {
        while (auto wheel = wheels.take().value()) {
          steps++;
          std::cout << "wheels at " << (**wheel)[0] << " m, " << (**wheel)[1] << " m" << std::endl;
        }
      } else if (key == GOALS) {
        auto goal = goals.take().value();
        if (goal)
          planner = std::thread([&planned, goal = std::move(*goal)] {
            std::cout << std::hypot((*goal)[0], (*goal)[1]) << " m to the goal" << std::endl;
            planned.trigger();
          });
      } else if (key == PLANNED) {
        planner.join();
        is_planned = true;
      } else {
        std::cout << "not all came within 30 s; start `wait_set publish`\n";
        if (planner.joinable()) planner.join();
        return;
      }
    }
  }
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(myelin::Node::open("base").value()), 0;
  if (role == "subscribe") return subscribe(myelin::Node::open("navigator").value()), 0;
  std::cerr << "usage: wait_set publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
