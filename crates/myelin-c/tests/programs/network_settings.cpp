// As network_settings.c, in C++.
#include <myelin.hpp>
#include <string>
#include <vector>

using namespace std::chrono_literals;

int main(int, char **argv) {
  myelin::NodeOptions options;
  options.network = 1;
  options.bulk_lane = std::stoi(argv[1]);
  options.datagram_bytes = std::stoull(argv[2]);
  auto node = myelin::Node::open("publisher", options).value();
  auto publisher = node.topic<myelin::Bytes>("large").reliable(60s).publisher().value();
  if (!publisher.wait_for_match(1, 60s).value()) return 1;
  std::vector<unsigned char> sample(64 << 10);
  while (publisher.matched() > 0) publisher.publish_copy(sample).value();
}
