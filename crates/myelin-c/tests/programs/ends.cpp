// Objects in static and thread-local C++ objects end with the process and with their thread, in any order.
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "check.h"
#include "myelin.hpp"

using namespace std::chrono_literals;

static constexpr auto watchdog = 60s;

struct Parts {
  explicit Parts(const char *name)
      : node(myelin::Node::open(name).value()),
        topic(node.topic<myelin::Bytes>("bytes")),
        publisher(topic.publisher().value()),
        subscriber(topic.subscriber().value()),
        callback(topic.subscriber().value().on_sample([](const auto &) {}).value()),
        client(node.client<myelin::Bytes, myelin::Bytes>("nobody").value()) {
    CHECK(publisher.wait_for_match(1, watchdog).value());
    const std::vector<unsigned char> bytes(1000);
    CHECK(publisher.publish_copy(bytes));
    sample.emplace(std::move(subscriber.receive(watchdog).value().value()));
  }
  ~Parts() {
    // Still intact, whichever object has ended before.
    CHECK(sample->size() == 1000);
    CHECK(publisher.publish_copy(std::vector<unsigned char>(3)));
  }
  myelin::Node node;
  myelin::Topic<myelin::Bytes> topic;
  myelin::Publisher<myelin::Bytes> publisher;
  myelin::Subscriber<myelin::Bytes> subscriber;
  myelin::Callback callback;
  myelin::Client<myelin::Bytes, myelin::Bytes> client;
  std::optional<myelin::Sample<myelin::Bytes>> sample;
};

// Made before main, by which the node's threads begin.
static Parts of_process("static");
static thread_local std::unique_ptr<Parts> of_thread;

int main() {
  for (int round = 0; round < 3; round++) {
    std::thread([] { of_thread = std::make_unique<Parts>("thread"); }).join();
  }
  of_thread = std::make_unique<Parts>("main");
  static Parts of_function("function");
  puts("all ends");
}
