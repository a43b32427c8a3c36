// The adaptor: one role of a round trip or of a stream over iceoryx 2.0, as the functions of the
// kit's table, using iceoryx's untyped C++ API.
//
// A topic is the service `myelin` with the run's name and `ping<n>` (ping publishes) or `pong<n>`
// (pong answers). match() explains how each end knows that the others are there.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "iceoryx_posh/mepoo/chunk_header.hpp"
#include "iceoryx_posh/popo/untyped_publisher.hpp"
#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "link.h"
#include "myelin_roudi.h"

namespace {

using iox::popo::ConsumerTooSlowPolicy;
using iox::popo::QueueFullPolicy;
using iox::popo::UntypedPublisher;
using iox::popo::UntypedSubscriber;
using Publisher = std::unique_ptr<UntypedPublisher>;
using Subscriber = std::unique_ptr<UntypedSubscriber>;
using WaitSet = iox::popo::WaitSet<128>;

// Limit of a run's name: the name of a process is a socket in /tmp, of at most 107 characters.
constexpr std::size_t RUN_CHARACTERS_MAX = 72;
// Queue of a subscriber in round trips, where one message is in flight.
constexpr uint64_t ROUND_TRIP_DEPTH = 16;
// Polls between two reads of the clock: some µs.
constexpr uint32_t POLLS_PER_LOOK = 64;
// Pause between two checks whether another end has come: iceoryx has no event for it.
constexpr timespec ASK_AGAIN = {0, 50 * 1000};

struct Link {
  std::string run;
  std::size_t message_bytes = 0;
  std::vector<Publisher> publishers;   // One per topic; none for pong of a stream.
  std::vector<Subscriber> subscribers; // One per topic; none for ping of a stream.
  Subscriber here;                     // Tells the others that this end has all its ports.
  std::vector<Publisher> others;       // One for each `here` of the other side.
  std::unique_ptr<WaitSet> waitset;    // None if the subscribers are polled.
  // The result of the last wait: subscribers with samples, and the index of the next one.
  WaitSet::NotificationInfoVector found;
  uint64_t found_next = 0;
  std::size_t poll_next = 0;
  uint32_t selected = 0;
  void *loan = nullptr;
  UntypedSubscriber *taken_from = nullptr;
  const void *taken = nullptr;
};

int fail(const std::string &what, const char *remedy)
{
  myelin_bench_error(("iceoryx: " + what).c_str(), remedy);
  return -1;
}

iox::capro::ServiceDescription service(const Link &link, const char *kind, uint32_t number)
{
  using iox::capro::IdString_t;
  const std::string event = kind + std::to_string(number);
  return {IdString_t("myelin"), IdString_t(iox::cxx::TruncateToCapacity, link.run.c_str()),
          IdString_t(iox::cxx::TruncateToCapacity, event.c_str())};
}

Publisher create_publisher(const Link &link, const char *kind, uint32_t number, bool reliable)
{
  iox::popo::PublisherOptions options;
  options.historyCapacity = 0;
  options.offerOnCreate = true;
  options.subscriberTooSlowPolicy = reliable ? ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER
                                             : ConsumerTooSlowPolicy::DISCARD_OLDEST_DATA;
  return std::make_unique<UntypedPublisher>(service(link, kind, number), options);
}

Subscriber create_subscriber(const Link &link, const char *kind, uint32_t number, uint64_t depth,
                             bool reliable)
{
  iox::popo::SubscriberOptions options;
  options.queueCapacity = depth;
  options.historyRequest = 0;
  options.subscribeOnCreate = true;
  options.queueFullPolicy =
      reliable ? QueueFullPolicy::BLOCK_PRODUCER : QueueFullPolicy::DISCARD_OLDEST_DATA;
  return std::make_unique<UntypedSubscriber>(service(link, kind, number), options);
}

// Makes the ports of all topics.
void create_topics(Link &link, const myelin_bench_prepare &prepare)
{
  const char *out = prepare.is_ping ? "ping" : "pong";
  const char *in = prepare.is_ping ? "pong" : "ping";
  const uint64_t depth = prepare.one_way ? prepare.depth : ROUND_TRIP_DEPTH;
  const bool reliable = prepare.reliable;
  if (prepare.subscribes)
    for (uint32_t topic = 0; topic < prepare.topics; topic++)
      link.subscribers.push_back(create_subscriber(link, in, topic, depth, reliable));
  if (prepare.publishes)
    for (uint32_t topic = 0; topic < prepare.topics; topic++)
      link.publishers.push_back(create_publisher(link, out, topic, reliable));
}

// Attached by state, not by event: a wait returns as long as there is something to take.
int create_waitset(Link &link, const myelin_bench_prepare &prepare)
{
  if (std::strcmp(prepare.system, MYELIN_ICEORYX_WAITSET) != 0 || link.subscribers.empty())
    return 0;
  link.waitset = std::make_unique<WaitSet>();
  for (const Subscriber &subscriber : link.subscribers) {
    const auto result =
        link.waitset->attachState(*subscriber, iox::popo::SubscriberState::HAS_DATA);
    if (result.has_error())
      return fail("attaching a subscriber to the WaitSet", "use fewer topics");
  }
  return 0;
}

// Waits for the other ends. iceoryx tells a publisher whether it has subscribers, but not how many.
// It tells a subscriber nothing: since there may be several publishers, it counts as subscribed
// before there is one. So each end, once it has all its ports, makes one more subscriber on its own
// topic (`here-<role><index>`), and a publisher on that topic of each end of the other side. RouDi
// connects a port with all existing ones before it answers the process that asked for it. So a
// publisher with a subscriber shows that the other end's ports are connected, too. This sends no
// messages.
int match(Link &link, const myelin_bench_prepare &prepare)
{
  const char *mine = prepare.is_ping ? "here-ping" : "here-pong";
  const char *theirs = prepare.is_ping ? "here-pong" : "here-ping";
  const uint32_t count = prepare.others;
  link.here = create_subscriber(link, mine, prepare.index, 1, false);
  for (uint32_t index = 0; index < count; index++)
    link.others.push_back(create_publisher(link, theirs, index, false));
  for (uint32_t found = 0;;) {
    while (found < count && link.others[found]->hasSubscribers())
      found++;
    if (found == count)
      return 0;
    if (myelin_bench_now_ns() >= prepare.match_until_ns) {
      const std::string absent = (prepare.is_ping ? "pong" : "ping") + std::to_string(found);
      return fail("timeout: " + absent + " did not connect",
                  "see the other side's log; match_timeout_ms sets the limit");
    }
    (void)nanosleep(&ASK_AGAIN, nullptr);
  }
}

// Whether each of our publishers has a subscriber: checks what match() concludes directly.
int check_topics(const Link &link)
{
  for (const Publisher &publisher : link.publishers)
    if (!publisher->hasSubscribers())
      return fail("RouDi did not connect a topic although both ends exist",
                  "see roudi.log in the run's folder");
  return 0;
}

void release(void *context)
{
  Link &link = *static_cast<Link *>(context);
  if (link.taken != nullptr)
    link.taken_from->release(link.taken);
  link.taken = nullptr;
}

void close_link(void *context)
{
  Link *link = static_cast<Link *>(context);
  release(link);
  if (link->loan != nullptr)
    link->publishers[link->selected]->release(link->loan);
  link->waitset.reset(); // Before the subscribers that are attached to it.
  delete link;
}

int open_link(const myelin_bench_prepare *prepare, void **context)
{
  if (std::strlen(prepare->run) > RUN_CHARACTERS_MAX)
    return fail("the run's name is too long", "at most 72 characters");
  // iceoryx would wait for RouDi, and then abort.
  if (myelin_roudi_expect() != 0)
    return -1;
  // myelin-bench-roudi cleans up after processes with this prefix.
  const std::string name = std::string("iceoryx_rt_") + prepare->run +
                           (prepare->is_ping ? "_ping" : "_pong") +
                           std::to_string(prepare->index);
  iox::runtime::PoshRuntime::initRuntime({iox::cxx::TruncateToCapacity, name.c_str()});
  Link *link = new Link();
  link->run = prepare->run;
  link->message_bytes = static_cast<std::size_t>(prepare->message_bytes);
  create_topics(*link, *prepare);
  int status = create_waitset(*link, *prepare);
  if (status == 0)
    status = match(*link, *prepare);
  if (status == 0)
    status = check_topics(*link);
  if (status != 0) {
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

void select_topic(void *context, uint32_t topic)
{
  static_cast<Link *>(context)->selected = topic;
}

int loan(void *context, std::size_t bytes, void **memory)
{
  Link &link = *static_cast<Link *>(context);
  if (bytes > link.message_bytes)
    return fail("a message that is larger than prepared", nullptr);
  auto result = link.publishers[link.selected]->loan(static_cast<uint32_t>(bytes));
  if (result.has_error())
    return fail(result.get_error() == iox::popo::AllocationError::RUNNING_OUT_OF_CHUNKS
                    ? "no chunk left to loan"
                    : "no memory to loan",
                "set more chunks in the message's pool (options.iceoryx.pools)");
  *memory = link.loan = result.value();
  return 0;
}

int publish_loan(void *context)
{
  Link &link = *static_cast<Link *>(context);
  link.publishers[link.selected]->publish(link.loan);
  link.loan = nullptr;
  return 0;
}

int publish(void *context, const void *message, std::size_t bytes)
{
  void *memory = nullptr;
  const int status = loan(context, bytes, &memory);
  if (status != 0)
    return status;
  std::memcpy(memory, message, bytes);
  return publish_loan(context);
}

int poll_subscribers(Link &link, uint64_t until_ns)
{
  const std::size_t count = link.subscribers.size();
  std::size_t index = link.poll_next < count ? link.poll_next : 0;
  for (uint32_t polls = 1;; polls++) {
    if (link.subscribers[index]->hasData()) {
      link.poll_next = index;
      return 1;
    }
    if (++index == count)
      index = 0;
    if (polls % POLLS_PER_LOOK == 0 && myelin_bench_now_ns() >= until_ns)
      return 0;
  }
}

int wait_for_chunk(void *context, uint64_t until_ns)
{
  Link &link = *static_cast<Link *>(context);
  if (link.waitset == nullptr)
    return poll_subscribers(link, until_ns);
  // Each subscriber found by the last wait still has its sample.
  if (link.found_next < link.found.size())
    return 1;
  const uint64_t left_ns = myelin_bench_left_ns(until_ns);
  link.found = link.waitset->timedWait(iox::units::Duration::fromNanoseconds(left_ns));
  link.found_next = 0;
  return !link.found.empty();
}

// The next subscriber in turn; null if none was found to have a sample.
UntypedSubscriber *next_subscriber(Link &link)
{
  if (link.waitset != nullptr)
    return link.found_next < link.found.size()
               ? link.found[link.found_next++]->getOrigin<UntypedSubscriber>()
               : nullptr;
  return link.poll_next < link.subscribers.size() ? link.subscribers[link.poll_next++].get()
                                                  : nullptr;
}

int take(void *context, uint64_t, const void **message, std::size_t *bytes)
{
  Link &link = *static_cast<Link *>(context);
  link.taken_from = next_subscriber(link);
  if (link.taken_from == nullptr)
    return 0;
  const auto result = link.taken_from->take();
  if (!result.has_error()) {
    *message = link.taken = result.value();
    *bytes = iox::mepoo::ChunkHeader::fromUserPayload(link.taken)->userPayloadSize();
    return 1;
  }
  const bool is_empty = result.get_error() == iox::popo::ChunkReceiveResult::NO_CHUNK_AVAILABLE;
  return is_empty ? 0 : fail("taking a chunk", nullptr);
}

} // namespace

extern "C" const myelin_bench_link myelin_iceoryx_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan, publish_loan, publish, wait_for_chunk, take, release,
    close_link, select_topic, nullptr, nullptr, nullptr, nullptr};
