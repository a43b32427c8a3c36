// A camera: images whose size is known only at run time, written straight into shared memory and read
// there, in a callback. Nothing is copied.
//
// c++ -std=c++17 image.cpp -lmyelin -pthread -o image; in one terminal `./image subscribe`, in
// another `./image publish`. Both end by themselves.
#include <algorithm>
#include <future>
#include <iostream>
#include <myelin.hpp>
#include <numeric>
#include <string>

using namespace std::chrono_literals;

constexpr std::uint64_t frames = 10;

static void publish(myelin::Node node) {
  auto publisher = node.topic<myelin::Bytes>("image").reliable(10s).publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `image subscribe` within 30 s\n";
    return;
  }
  for (std::uint64_t frame = 0; frame < frames; frame++) {
    auto image = publisher.loan(frame % 2 == 0 ? 320 * 240 * 3 : 1440 * 1080 * 3).value();
    std::fill(image.begin(), image.end(), frame); // the exposure
    std::move(image).publish().value();
  }
  std::cout << "published " << frames << " images\n";
}

static void subscribe(myelin::Node node) {
  auto subscriber = node.topic<myelin::Bytes>("image").reliable(10s).subscriber().value();
  std::promise<void> finished;
  auto callback = std::move(subscriber).on_sample([&](const auto &image) {
    auto sum = std::accumulate(image.begin(), image.end(), std::uint64_t{0});
    std::cout << "image " << image.sequence() << ": " << image.size() << " B, brightness "
              << sum / image.size() << std::endl;
    if (image.sequence() + 1 == frames) finished.set_value();
  }).value();
  if (finished.get_future().wait_for(60s) != std::future_status::ready)
    std::cout << "not all images came within 60 s; start `image publish`\n";
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(myelin::Node::open("camera").value()), 0;
  if (role == "subscribe") return subscribe(myelin::Node::open("viewer").value()), 0;
  std::cerr << "usage: image publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
