// A service: one program asks for a path, another one plans it and replies with as many points as it
// takes.
//
// c++ -std=c++17 service.cpp -lmyelin -pthread -o service; in one terminal `./service call`, in
// another `./service serve`. Both end by themselves.
#include <array>
#include <cmath>
#include <iostream>
#include <myelin.hpp>
#include <string>

using namespace std::chrono_literals;

struct Goal {
  double x, y; // from the origin to there
  double step; // between two points, in m
};
MYELIN_STRUCT(Goal, x, y, step)
using Path = myelin::Slice<std::array<double, 2>>;

static void serve(myelin::Node node) {
  auto server = node.server<Goal, Path>("plan").value();
  int plans = 0;
  // Until no client is left.
  while (auto request = server.receive(plans ? 1s : 30s).value()) {
    const Goal &goal = **request;
    auto points = std::size_t(std::ceil(std::hypot(goal.x, goal.y) / goal.step)) + 1;
    auto path = request->loan(points).value(); // in shared memory, where the client reads it
    for (std::size_t at = 0; at < points; at++) {
      double part = double(at) / double(points - 1);
      path[at] = {goal.x * part, goal.y * part};
    }
    std::move(path).send().value();
    plans++;
  }
  std::cout << "planned " << plans << " paths\n";
}

static void call(myelin::Node node) {
  auto client = node.client<Goal, Path>("plan").value();
  for (int leg = 1; leg <= 5; leg++) {
    // The server may start within this time; if it dies, the call ends at once.
    auto path = client.call(Goal{3.0 * leg, 4.0 * leg, 1.0 / 1024.0}, 30s).value();
    auto [x, y] = path[path.size() - 1];
    std::cout << path.size() << " points to " << x << " m, " << y << " m\n";
  }
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "serve") return serve(myelin::Node::open("planner").value()), 0;
  if (role == "call") return call(myelin::Node::open("robot").value()), 0;
  std::cerr << "usage: service serve|call\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
