// Greetings from one program to another: bytes of any length.
//
// c++ -std=c++17 hello.cpp -lmyelin -o hello; `./hello subscribe`, and in another terminal
// `./hello publish`.
#include <iostream>
#include <myelin.hpp>
#include <string>

using namespace std::chrono_literals;

constexpr int greetings = 5;

static void publish() {
  auto node = myelin::Node::open("hello-publisher").value();
  auto publisher = node.topic<myelin::Bytes>("hello").publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `hello subscribe` within 30 s\n";
    return;
  }
  for (int number = 1; number <= greetings; number++)
    publisher.publish_copy("hello, number " + std::to_string(number)).value();
  std::cout << "published " << greetings << " greetings\n";
}

static void subscribe() {
  auto node = myelin::Node::open("hello-subscriber").value();
  auto subscriber = node.topic<myelin::Bytes>("hello").subscriber().value();
  for (int each = 0; each < greetings; each++) {
    auto greeting = subscriber.receive(30s).value();
    if (!greeting) {
      std::cout << "nothing came for 30 s; start `hello publish`\n";
      return;
    }
    std::cout << greeting->sequence() << ": " << std::string(greeting->begin(), greeting->end())
              << '\n';
  }
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(), 0;
  if (role == "subscribe") return subscribe(), 0;
  std::cerr << "usage: hello publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
