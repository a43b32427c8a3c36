// A robot's pose, on its own host and on others: the same two programs, a node that is opened to the
// network. Both need CycloneDDS.
//
// c++ -std=c++17 two_hosts.cpp -lmyelin -pthread -o two_hosts; in one terminal `./two_hosts subscribe`, in
// another `./two_hosts publish`. Both end by themselves.
#include <iostream>
#include <myelin.hpp>
#include <string>
#include <thread>

using namespace std::chrono_literals;

constexpr int poses = 10;

struct Pose {
  double x, y, heading;
};
MYELIN_STRUCT(Pose, x, y, heading)

static myelin::Node open(const char *name) {
  myelin::NodeOptions options;
  options.network = 1;
  auto node = myelin::Node::open(name, options).value();
  char reason[256];
  myelin_network network;
  if (myelin_node_network(node.get(), reason, sizeof reason, &network) == MYELIN_OK &&
      network == MYELIN_NETWORK_WAITING)
    std::cerr << "alone for now: " << reason << '\n';
  return node;
}

static void publish(myelin::Node node) {
  auto publisher = node.topic<Pose>("pose").reliable(10s).publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `two_hosts subscribe` within 30 s\n";
    return;
  }
  for (int step = 0; step < poses; step++) {
    publisher.publish_copy(Pose{double(step), step / 2.0, 0.25}).value();
    std::this_thread::sleep_for(20ms);
  }
  std::cout << "published " << poses << " poses\n";
}

static void subscribe(myelin::Node node) {
  auto subscriber = node.topic<Pose>("pose").reliable(10s).subscriber().value();
  for (int each = 0; each < poses; each++) {
    auto pose = subscriber.receive(30s).value();
    if (!pose) {
      std::cout << "nothing came for 30 s; start `two_hosts publish`\n";
      return;
    }
    const Pose &at = **pose;
    std::cout << "at " << at.x << " m, " << at.y << " m, heading " << at.heading << " rad\n";
  }
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(open("robot")), 0;
  if (role == "subscribe") return subscribe(open("map")), 0;
  std::cerr << "usage: two_hosts publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
