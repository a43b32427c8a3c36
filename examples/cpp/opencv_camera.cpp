// A camera or a video by OpenCV, decoded straight into shared memory, and a viewer that shows it from there.
//
//     ./opencv_camera view [LAST.png]         in one terminal
//     ./opencv_camera publish [0 | VIDEO]     in another; 0 is the first camera
//
// With LAST.png the viewer opens no window and saves the last image. It ends when nothing has arrived for 5 s.
// c++ -std=c++17 opencv_camera.cpp $(pkg-config --cflags --libs myelin opencv4) -pthread -o opencv_camera
// (apt-get install libopencv-dev). The Python example opencv_camera.py is the same: each views the other's camera.
#include <iostream>
#include <myelin.hpp>
#include <opencv2/highgui.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>
#include <optional>
#include <string>

using namespace std::chrono_literals;

struct Frame {
  std::uint64_t stamp_ns;
  std::uint32_t width, height;
};
MYELIN_STRUCT(Frame, stamp_ns, width, height)

using Image = myelin::HeaderSlice<Frame, std::uint8_t>;

static auto camera_topic(myelin::Node &node) { return node.topic<Image>("camera").depth(4).transient_local(1); }

static int publish(const std::string &source) {
  const bool is_number = source.find_first_not_of("0123456789") == std::string::npos;
  cv::VideoCapture video;
  if (!(is_number ? video.open(std::stoi(source)) : video.open(source))) {
    std::cerr << "OpenCV cannot open " << source << '\n';
    return 1;
  }
  const auto height = static_cast<std::uint32_t>(video.get(cv::CAP_PROP_FRAME_HEIGHT));
  const auto width = static_cast<std::uint32_t>(video.get(cv::CAP_PROP_FRAME_WIDTH));
  auto node = myelin::Node::open("camera").value();
  auto publisher = camera_topic(node).publisher().value();
  int frames = 0;
  for (; video.grab(); ++frames) {
    auto image = publisher.loan(std::size_t{height} * width * 3).value();
    image.header() = {myelin::now(), width, height};
    cv::Mat pixels(static_cast<int>(height), static_cast<int>(width), CV_8UC3, image.slice().data());
    const auto *place = pixels.data;
    if (!video.retrieve(pixels) || pixels.data != place) {  // another size: OpenCV has made memory of its own
      std::cerr << "the images change their size\n";
      return 1;
    }
    std::move(image).publish().value();
  }
  std::cout << "published " << frames << " images of " << width << " x " << height << '\n';
  return 0;
}

/// The image of a sample, where it lies.
static cv::Mat pixels_of(const myelin::Sample<Image> &sample) {
  const auto &[stamp_ns, width, height] = sample.header();
  // OpenCV has no Mat of const: do not write to it, the memory is everybody's.
  return cv::Mat(static_cast<int>(height), static_cast<int>(width), CV_8UC3, const_cast<std::uint8_t *>(sample.slice().data()));
}

static int view(const std::string &save) {
  auto node = myelin::Node::open("viewer").value();
  auto subscriber = camera_topic(node).subscriber().value();
  std::optional<myelin::Sample<Image>> last;
  while (auto sample = subscriber.receive(last ? 5s : 30s).value()) {
    if (save.empty()) {
      cv::imshow("camera", pixels_of(*sample));
      cv::waitKey(1);
    }
    last = std::move(sample);
  }
  if (!last) {
    std::cerr << "no image came within 30 s; start `opencv_camera publish`\n";
    return 1;
  }
  if (!save.empty()) cv::imwrite(save, pixels_of(*last));
  std::cout << "the last image was number " << last->sequence() << '\n';
  return 0;
}

int main(int argc, char **argv) try {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "publish") return publish(argc > 2 ? argv[2] : "0");
  if (role == "view") return view(argc > 2 ? argv[2] : "");
  std::cerr << "usage: opencv_camera publish [0 | VIDEO] | view [LAST.png]\n";
  return 2;
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
