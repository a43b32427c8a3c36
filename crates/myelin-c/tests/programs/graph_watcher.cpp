/* Does the same as graph_watcher.c. */
#include <cmath>
#include <iostream>

#include "myelin.hpp"

#include "check.h"

static std::uint64_t counted_ns;

static void print(const myelin::GraphStatus &status) {
  int silent = 0, stopped = 0, gone = 0;
  for (auto &node : status.nodes) {
    silent += node.is_silent, stopped += node.is_stopped;
    CHECK(node.memory_bytes > 0u && node.threads > 0u && !(node.cpu_percent && *node.cpu_percent < 0));
  }
  for (auto &change : status.changes) {
    CHECK(change.endpoint.topic == "imu");
    gone += !change.is_found;
  }
  const myelin::GraphStatus::Topic none{};
  const auto &topic = status.topic("imu") ? *status.topic("imu") : none;
  std::cout << "publishers " << topic.publishers.size() << " subscribers " << topic.subscribers.size() << " refused "
            << topic.refused << " silent " << silent << " stopped " << stopped << " found "
            << status.changes.size() - static_cast<std::size_t>(gone) << " gone " << gone;
  for (auto &publisher : topic.publishers) {
    CHECK(publisher.info.is_publisher);
    std::cout << " published " << publisher.info.counters.value().published;
    if (publisher.rate_hz)
      std::cout << " since " << std::lround(*publisher.rate_hz * double(publisher.counted_ns - counted_ns) / 1e9);
    counted_ns = publisher.counted_ns;
    for (auto &match : publisher.matches)
      if (match.state == MYELIN_MATCH_REFUSED && match.setting == MYELIN_SETTING_RELIABILITY)
        std::cout << " offered " << match.offered;
  }
  std::cout << std::endl;
}

int main() {
  auto node = myelin::Node::open("watcher").value();
  auto watcher = node.watch_graph("im?").value();
  std::optional<myelin::Publisher<myelin::Slice<std::uint8_t>>> publisher;
  std::string word;
  for (int number; std::cin >> word >> number;) {
    if (word == "update") {
      print(watcher.update(std::chrono::milliseconds(number)).value());
      continue;
    }
    if (!publisher) publisher = node.topic<myelin::Slice<std::uint8_t>>("imu").publisher().value();
    for (std::uint8_t sample = 0; sample < number; sample++) publisher->publish_copy(std::vector<std::uint8_t>{sample}).value();
    std::cout << "published" << std::endl;
  }
}
