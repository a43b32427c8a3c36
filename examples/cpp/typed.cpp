// A sensor: a struct, checked on both sides. The same fields in Rust make the same layout hash.
//
// c++ -std=c++17 typed.cpp -lmyelin -pthread -o typed; in one terminal `./typed subscribe`, in
// another `./typed publish`. Both end by themselves.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <myelin.hpp>
#include <string>

using namespace std::chrono_literals;

struct Imu {
  std::uint64_t stamp_ns;
  double acceleration[3];
  float temperature;
  std::uint8_t _pad[4]; // There must be no padding: the compiler says so.
};
MYELIN_STRUCT(Imu, stamp_ns, acceleration, temperature, _pad)

constexpr int samples = 5;

static void publish(myelin::Node node) {
  auto publisher = node.topic<Imu>("imu").publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `typed subscribe` within 30 s\n";
    return;
  }
  for (std::uint64_t number = 0; number < samples; number++)
    publisher.publish_copy(Imu{number * 10'000'000, {0.0, 0.0, 9.81}, 21.5f, {}}).value();
  std::cout << "published " << samples << " samples\n";
}

static void subscribe(myelin::Node node) {
  auto subscriber = node.topic<Imu>("imu").subscriber().value();
  for (int each = 0; each < samples; each++) {
    auto sample = subscriber.receive(30s).value();
    if (!sample) return;
    const Imu &imu = **sample;
    std::printf("%llu ns: [%.1f, %.1f, %.2f] m/s², %.1f °C\n", (unsigned long long)imu.stamp_ns,
                imu.acceleration[0], imu.acceleration[1], imu.acceleration[2], imu.temperature);
  }
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(myelin::Node::open("imu-driver").value()), 0;
  if (role == "subscribe") return subscribe(myelin::Node::open("filter").value()), 0;
  std::cerr << "usage: typed publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
