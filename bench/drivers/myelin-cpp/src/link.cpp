// The adaptor: one role of a round trip or of a stream, in C++17, as the functions of the kit's
// table.
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include <myelin.hpp>

#include "myelin_bench_kit.h"

namespace {

using Bytes = myelin::Bytes;
using std::chrono::nanoseconds;

/// Keeps the result of a call, as on a user's stack: moving it copies it.
template <class T> class Returned {
public:
  Returned() = default;
  Returned(const Returned &) = delete;
  ~Returned() { release(); }
  template <class F> T &of(F call) {
    release();
    value_ = new (place_) T(call());
    return *value_;
  }
  T &get() { return *value_; }
  void release() {
    if (value_) value_->~T();
    value_ = nullptr;
  }

private:
  T *value_ = nullptr;
  alignas(T) unsigned char place_[sizeof(T)];
};

struct Link {
  std::optional<myelin::Publisher<Bytes>> publisher;   // none for pong of a stream
  std::optional<myelin::Subscriber<Bytes>> subscriber; // none for ping of a stream
  Returned<myelin::Result<myelin::Loan<Bytes>>> loan;
  Returned<myelin::Result<std::optional<myelin::Sample<Bytes>>>> taken;
  bool polls = false;
};

Link &of(void *context) { return *static_cast<Link *>(context); }

// The library's messages already say what to do.
int fail(const std::exception &error) {
  myelin_bench_error(error.what(), nullptr);
  return -1;
}

myelin::Topic<Bytes> topic(const myelin::Node &node, const myelin_bench_prepare &prepare,
                           const char *direction) {
  auto topic = node.topic<Bytes>(std::string("bench/") + prepare.run + '/' + direction);
  if (prepare.one_way) {
    topic.depth(prepare.depth);
    if (prepare.reliable) topic.reliable_or_fail(nanoseconds(prepare.match_timeout_ns));
  }
  return topic;
}

std::unique_ptr<Link> open_ends(const myelin_bench_prepare &prepare) {
  myelin::NodeOptions options;
  options.has_domain = true;
  options.domain = prepare.domain;
  options.network = -1;
  auto node = myelin::Node::open(std::string("bench-") + prepare.run, options).value();
  auto link = std::make_unique<Link>();
  if (prepare.publishes)
    link->publisher = topic(node, prepare, prepare.is_ping ? "ping" : "pong").publisher().value();
  if (prepare.subscribes) {
    link->polls = std::string(prepare.system).find(".shm-poll") != std::string::npos;
    myelin::SubscriberOptions settings;
    settings.wait = link->polls ? MYELIN_WAIT_POLL : MYELIN_WAIT_BLOCK;
    settings.publishers_max = prepare.publishers > 16 ? prepare.publishers : 0;
    link->subscriber =
        topic(node, prepare, prepare.is_ping ? "pong" : "ping").subscriber(settings).value();
  }
  return link;
}

bool matches(Link &link, const myelin_bench_prepare &prepare) {
  const nanoseconds limit(prepare.match_timeout_ns);
  return (!link.publisher || link.publisher->wait_for_match(prepare.others, limit).value()) &&
         (!link.subscriber || link.subscriber->wait_for_match(prepare.others, limit).value());
}

int open_link(const myelin_bench_prepare *prepare, void **context) try {
  auto link = open_ends(*prepare);
  if (!matches(*link, *prepare))
    return myelin_bench_fail("see its log in the results folder",
                             "the other role was not found in time");
  *context = link.release();
  return 0;
} catch (const std::exception &error) {
  return fail(error);
}

void close_link(void *context) { delete static_cast<Link *>(context); }

int loan(void *context, std::size_t bytes, void **memory) {
  Link &link = of(context);
  auto &loan = link.loan.of([&] { return link.publisher->loan(bytes); });
  if (!loan) return fail(loan.error());
  *memory = loan->data();
  return 0;
}

int publish_loan(void *context) {
  auto published = std::move(*of(context).loan.get()).publish();
  return published ? 0 : fail(published.error());
}

int publish(void *context, const void *message, std::size_t bytes) {
  const myelin::Span<const unsigned char> copied(static_cast<const unsigned char *>(message), bytes);
  auto published = of(context).publisher->publish_copy(copied);
  return published ? 0 : fail(published.error());
}

// As in user code, one call waits and takes. A polling end is awake anyway, and the kit calls again
// until until_ns. So it reads no clock, like the driver in Rust.
int receive(void *context, std::uint64_t until_ns, const void **message, std::size_t *bytes) {
  Link &link = of(context);
  const nanoseconds left(link.polls ? 1'000'000 : myelin_bench_left_ns(until_ns));
  auto &taken = link.taken.of([&] { return link.subscriber->receive(left); });
  if (!taken) return fail(taken.error());
  if (!*taken) return 0;
  *message = (*taken)->data();
  *bytes = (*taken)->size();
  return 1;
}

void release(void *context) { of(context).taken.release(); }

} // namespace

extern "C" const myelin_bench_link myelin_driver_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan,       publish_loan, publish, nullptr,
    receive,                 release,   close_link, nullptr,      nullptr, nullptr,
    nullptr,                 nullptr};
