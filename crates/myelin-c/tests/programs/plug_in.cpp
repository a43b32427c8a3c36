// A plug-in that opens a node, endpoints and a callback while the loader runs its constructors, and closes some
// of them there, others while the loader runs its destructors.
#include <myelin.hpp>

namespace {
struct Endpoints {
  myelin::Node node = myelin::Node::open("plug-in").value();
  myelin::Topic<double> topic = node.topic<double>("plug-in");
  myelin::Publisher<double> publisher = topic.publisher().value();
  myelin::Callback callback =
      topic.subscriber().value().on_sample([this](const myelin::Sample<double> &) { calls++; }).value();
  int calls = 0;

  int publish() {
    for (int i = 0; i < 5; i++) publisher.publish_copy(1.0).value();
    return calls;
  }
};
const int in_constructor = Endpoints().publish();
Endpoints kept;
} // namespace

extern "C" int use();
extern "C" int use() { return in_constructor + kept.publish(); }
