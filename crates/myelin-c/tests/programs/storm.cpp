// As storm.c, in C++.
#include <thread>
#include <unistd.h>

#include "check.h"
#include "myelin.hpp"

using namespace std::chrono_literals;
using Payload = std::vector<unsigned char>;

constexpr std::size_t head_bytes = 16, held_max = 8, bytes_max = 50000;
constexpr auto watchdog = 60s;

static std::size_t bytes_of(std::uint64_t number) {
  return head_bytes + (number % 4 ? number * 7919 % bytes_max : number % 80);
}

template <class To> void fill(To &to, std::uint64_t number) {
  std::uint64_t head[] = {number, static_cast<std::uint64_t>(getpid())};
  std::memset(to.data(), static_cast<int>(number & 0xff), to.size());
  std::memcpy(to.data(), head, sizeof head);
}

template <class From> std::uint64_t check(const From &from) {
  std::uint64_t number;
  std::memcpy(&number, from.data(), sizeof number);
  CHECK(from.size() == bytes_of(number));
  for (auto at = from.begin() + head_bytes; at != from.end(); ++at) CHECK(*at == (number & 0xff));
  return number;
}

static void publish(const myelin::Node &node) {
  auto publisher = node.topic<myelin::Bytes>("storm").publisher().value();
  for (std::uint64_t number = 0;; number++) {
    if (number % 10 == 0) auto discarded = publisher.loan(bytes_of(number)).value();
    auto loan = publisher.loan(bytes_of(number)).value();
    fill(loan, number);
    CHECK(std::move(loan).publish().value().sequence == number);
    std::this_thread::sleep_for(100us);
  }
}

static void subscribe(const myelin::Node &node) {
  auto subscriber = node.topic<myelin::Bytes>("storm").subscriber().value();
  std::vector<myelin::Sample<myelin::Bytes>> held;
  for (;;) {
    auto sample = subscriber.receive(watchdog).value();
    if (!sample) continue;
    CHECK(check(*sample) == sample->sequence());
    held.push_back(std::move(*sample));
    if (held.size() < held_max) continue;
    for (auto &each : held) CHECK(check(each) == each.sequence());
    held.clear();
  }
}

static void call(const myelin::Node &node) {
  auto client = node.client<myelin::Bytes, myelin::Bytes>("survivor").value();
  for (std::uint64_t number = 0;; number++) {
    Payload request(bytes_of(number));
    fill(request, number);
    CHECK(check(client.call(request, watchdog).value()) == number);
  }
}

static void serve(const myelin::Node &node) {
  auto server = node.server<myelin::Bytes, myelin::Bytes>("victim").value();
  for (;;) {
    auto request = server.receive(watchdog).value();
    if (!request) continue;
    auto loan = request->loan(request->size()).value();
    fill(loan, check(*request));
    std::move(loan).send().value();
  }
}

int main(int, char **argv) {
  auto node = myelin::Node::open("victim").value();
  std::string role = argv[1];
  if (role == "publisher") publish(node);
  if (role == "subscriber") subscribe(node);
  if (role == "client") call(node);
  if (role == "server") serve(node);
  return 2;
}
