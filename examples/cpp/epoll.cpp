// A subscriber as one of several descriptors in an epoll loop, here beside a timer.
//
// c++ -std=c++17 epoll.cpp -lmyelin -pthread -o epoll; in one terminal `./epoll subscribe`, in
// another `./epoll publish`. Both end by themselves.
#include <iostream>
#include <myelin.hpp>
#include <string>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

constexpr int samples = 10;
using Speed = double[2];

static void publish(myelin::Node node) {
  auto publisher = node.topic<Speed>("odometry").publisher().value();
  if (!publisher.wait_for_match(1, 30s).value()) {
    std::cout << "nobody is there; start `epoll subscribe` within 30 s\n";
    return;
  }
  for (int step = 0; step < samples; step++) {
    publisher.publish_copy({double(step), 0.5}).value();
    std::this_thread::sleep_for(20ms);
  }
  std::cout << "published " << samples << " samples\n";
}

static void subscribe(myelin::Node node) {
  myelin::SubscriberOptions options;
  options.descriptor = true;
  auto odometry = node.topic<Speed>("odometry").subscriber(options).value();
  int odometry_fd = odometry.descriptor().value();
  int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  itimerspec once{};
  once.it_value.tv_sec = 30;
  timerfd_settime(timer_fd, 0, &once, nullptr);
  int loop_fd = epoll_create1(EPOLL_CLOEXEC);
  for (int fd : {odometry_fd, timer_fd}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(loop_fd, EPOLL_CTL_ADD, fd, &event);
  }
  int taken = 0;
  // First take the samples that have come already, then wait; take until nothing is left before waiting again.
  while (taken < samples) {
    while (auto sample = odometry.take().value()) {
      taken++;
      std::cout << "at " << (**sample)[0] << " m, " << (**sample)[1] << " m/s\n";
    }
    epoll_event event;
    if (taken < samples && epoll_wait(loop_fd, &event, 1, -1) == 1 && event.data.fd == timer_fd) {
      std::cout << "not all came within 30 s; start `epoll publish`\n";
      break;
    }
  }
  close(loop_fd);
  close(timer_fd);
}

int main(int argc, char **argv) try {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(myelin::Node::open("odometer").value()), 0;
  if (role == "subscribe") return subscribe(myelin::Node::open("display").value()), 0;
  std::cerr << "usage: epoll publish|subscribe\n";
  return 2;
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
