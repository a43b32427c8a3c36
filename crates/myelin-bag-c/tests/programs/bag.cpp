// Records what the test publishes, reads it back, plays it under another name. Arguments: the path of the recording.
#include <myelin_bag.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

struct Imu {
  std::uint64_t stamp_ns;
  double acceleration[3];
};

static void expect(bool is_so, const char *what, int line) {
  if (is_so) return;
  std::fprintf(stderr, "line %d: %s\n", line, what);
  std::exit(1);
}
#define EXPECT(is_so) expect(is_so, #is_so, __LINE__)

template <class F> static std::string error_of(F act) {
  try {
    act();
  } catch (const myelin::BagError &error) {
    return error.what();
  }
  return "none";
}

int main(int, char **arguments) {
  const std::string path = arguments[1];
  std::string line;

  myelin::RecorderOptions options;
  options.topics = {"imu", "cam*"};
  myelin::Recorder recorder(path, options);
  std::cout << "records" << std::endl;
  std::getline(std::cin, line);
  auto status = recorder.close();
  EXPECT(status.messages == 101 && status.lost_publisher_ring + status.lost_recorder + status.lost_disk == 0);

  myelin::BagReader bag(path);
  EXPECT(bag.problems().empty());
  auto topics = bag.topics();
  auto messages = bag.messages({"imu"});
  std::uint64_t number = 0, last = 0;
  while (auto message = messages.next()) {
    auto imu = message->value<Imu>();
    EXPECT(imu.stamp_ns == number && imu.acceleration[2] == number / 8.0);
    EXPECT(topics[message->topic()].name == "imu" && topics[message->topic()].messages == 100);
    EXPECT(topics[message->topic()].type_hash != 0 && topics[message->topic()].type_name == "Imu");
    EXPECT(message->log_ns() >= last && message->log_ns() >= message->publish_ns());
    EXPECT(message->log_ns() >= bag.times().first && message->log_ns() <= bag.times().second);
    last = message->log_ns(), number++;
    EXPECT(error_of([&] { message->value<double>(); }).find("32 B") != std::string::npos);
  }
  EXPECT(number == 100);
  auto camera = bag.messages({"camera"});
  auto image = camera.next();
  EXPECT(image && image->elements<std::uint16_t>() == (std::vector<std::uint16_t>{1, 2, 65535}));
  EXPECT(!camera.next());
  myelin::BagSelection selection;
  selection.start_ns = bag.times().second + 1;
  EXPECT(!bag.messages({}, selection).next());

  EXPECT(error_of([&] { bag.messages({"imi"}); }).find("imu") != std::string::npos);
  EXPECT(error_of([&] { myelin::BagReader(path + ".none"); }).find(path + ".none") != std::string::npos);
  EXPECT(error_of([&] { myelin::Recorder(path, options); }) != "none");
  std::ofstream(path + ".text") << "this is a text and no recording at all";
  EXPECT(error_of([&] { myelin::BagReader(path + ".text"); }).find("MCAP") != std::string::npos);

  // A file that ends anywhere.
  std::ifstream whole(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  std::ofstream(path + ".cut", std::ios::binary) << bytes.substr(0, bytes.size() / 3);
  myelin::BagReader cut(path + ".cut");
  EXPECT(!cut.problems().empty());
  auto rest = cut.messages({"imu"});
  std::uint64_t left = 0;
  while (auto message = rest.next()) EXPECT(message->value<Imu>().stamp_ns == left++);
  EXPECT(left < 100);

  myelin::PlayerOptions play;
  play.topics = {"imu"};
  play.rename = {{"imu", "played"}};
  play.rate = 100;
  play.wait_for_slow = true;
  EXPECT(error_of([&] {
           myelin::PlayerOptions wrong;
           wrong.topics = {"imi"};
           myelin::Player(path, wrong);
         }).find("imi") != std::string::npos);
  myelin::Player player(path, play);
  EXPECT(error_of([&] { player.wait(); }).find("play") != std::string::npos);
  EXPECT(error_of([&] { player.set_rate(0); }).find("rate") != std::string::npos);
  EXPECT(player.wait_for_subscribers());
  player.pause();
  player.step();
  std::cout << "stepped" << std::endl;
  std::getline(std::cin, line);
  // The subscriber may have the message before the player has counted it.
  while (player.status().messages == 0) std::this_thread::yield();
  EXPECT(player.status().messages == 1 && player.status().is_paused);
  EXPECT(!player.wait(std::chrono::nanoseconds(0)));
  player.play();
  auto played = player.wait();
  EXPECT(played && played->messages == 100 && played->unfit == 0);
  std::cout << "played" << std::endl;
  std::getline(std::cin, line);
}
