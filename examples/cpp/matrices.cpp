// Matrices of Eigen and images of OpenCV that lie in shared memory: neither is copied. One process, which ends by
// itself.
//
// c++ -std=c++17 matrices.cpp -I/usr/include/eigen3 -I/usr/include/opencv4 -lmyelin -lopencv_core -pthread
// (apt-get install libeigen3-dev libopencv-core-dev)
#include <Eigen/Core>
#include <iostream>
#include <myelin.hpp>
#include <opencv2/core.hpp>

using namespace std::chrono_literals;

// Eigen's matrices are not trivially copyable, so that they are no fields; their numbers are, column by column.
struct Pose {
  double position[3];
  double rotation[9];
};
MYELIN_STRUCT(Pose, position, rotation)

struct Frame {
  std::uint32_t rows, columns;
};
MYELIN_STRUCT(Frame, rows, columns)
using Image = myelin::HeaderSlice<Frame, unsigned char>;

static void publish(myelin::Publisher<Pose> poses, myelin::Publisher<Image> images) {
  auto pose = poses.loan().value();
  Eigen::Map<Eigen::Vector3d>(pose->position) << 1, 2, 3;
  Eigen::Map<Eigen::Matrix3d>(pose->rotation).setIdentity();
  std::move(pose).publish().value();

  auto loan = images.loan(480 * 640 * 3).value();
  loan.header() = {480, 640};
  cv::Mat image(480, 640, CV_8UC3, loan.slice().data()); // the pixels stay where they are
  image.setTo(cv::Scalar(10, 20, 30));
  std::move(loan).publish().value();
}

int main() try {
  auto node = myelin::Node::open("matrices").value();
  auto of_poses = node.topic<Pose>("pose");
  auto of_images = node.topic<Image>("image");
  auto poses = of_poses.subscriber().value();
  auto images = of_images.subscriber().value();
  publish(of_poses.publisher().value(), of_images.publisher().value());

  auto pose = poses.receive(1s).value();
  Eigen::Map<const Eigen::Vector3d> position((*pose)->position);
  Eigen::Map<const Eigen::Matrix3d> rotation((*pose)->rotation);
  std::cout << "at " << (rotation * position).transpose() << '\n';

  auto sample = images.receive(1s).value();
  // Read-only memory: const, as who writes to it is ended by SIGSEGV.
  const cv::Mat image(int(sample->header().rows), int(sample->header().columns), CV_8UC3,
                      const_cast<unsigned char *>(sample->slice().data()));
  std::cout << image.size() << ", mean " << cv::mean(image) << '\n';
} catch (const myelin::Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
