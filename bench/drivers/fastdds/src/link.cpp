/* The adaptor: one role of a round trip or of a stream over Fast DDS, in the form of the kit's
 * table.
 *
 * Ping writes topic `ping_<run>` and reads `pong_<run>`, pong the other way round; of a stream
 * there is `ping_<run>` alone, or `ping_<run>_0` and so on. What Fast DDS is told is in the
 * profiles of config.rs. No exception leaves this file.
 */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>

#include "library_version.h"
#include "endpoints.hpp"
#include "link.h"
#include "versions.hpp"

namespace {

using namespace eprosima::fastdds::dds;
using myelin::Duration_t;
using myelin::Endpoints;
using myelin::Failure;
using myelin::Instant;

/* A wait ends after this at the latest and is begun anew: what std::condition_variable can add to
 * the present without overflow. */
constexpr std::uint64_t WAIT_NS_MAX = 3'600'000'000'000;

/* The profiles' max_blocking_time. */
constexpr std::chrono::seconds WRITE_BLOCKS_MAX(10);

/* How long an end stays that 2.9 must not lose at once, which nothing tells when it may go. Nothing is
 * measured then.
 * - A publisher that leaves takes shared data along: it is unmapped and its books are freed under the
 *   loans of subscribers, who crash. They acknowledge a sample when they take it, not when they give
 *   it back; this is far longer than they keep one.
 * - A reliable reader that leaves while a writer answers what it has missed, which has long come
 *   otherwise (nackResponseDelay: 5 ms), locks that writer up for good, see `write`. */
constexpr std::chrono::milliseconds LINGER(100);

struct Link {
  explicit Link(const myelin_bench_prepare &prepare)
      : endpoints(prepare), message_bytes(prepare.message_bytes)
  {
  }

  Endpoints endpoints;
  std::size_t message_bytes;
  bool awaits_acknowledgements = false; /* of what is written last */
  bool lingers_at_close = false;
  std::uint32_t selected = 0;         /* writer of the next loan or publish */
  void *loan = nullptr;               /* of that writer, between loan and publish_loan */
  DataReader *taken_from = nullptr;   /* between take and release, if the sample is a loan */
  LoanableSequence<std::uint8_t> data;
  SampleInfoSeq infos;
  std::vector<std::uint8_t> copy;     /* message_bytes; where take copies to, if it copies */
};

template <typename Act> int guarded(Act act) noexcept
{
  return myelin_bench::guarded("Fast DDS", act);
}

const char *name(const ReturnCode_t &code)
{
  if (code == myelin::codes::RETCODE_TIMEOUT)
    return "timeout";
  if (code == myelin::codes::RETCODE_OUT_OF_RESOURCES)
    return "out of resources";
  if (code == myelin::codes::RETCODE_ILLEGAL_OPERATION)
    return "illegal operation";
  if (code == myelin::codes::RETCODE_BAD_PARAMETER)
    return "bad parameter";
  if (code == myelin::codes::RETCODE_PRECONDITION_NOT_MET)
    return "precondition not met";
  return "error";
}

void check(const ReturnCode_t &code, const char *what, const char *remedy = "")
{
  if (code != myelin::codes::RETCODE_OK)
    throw Failure(std::string(what) + ": " + name(code), remedy);
}

/* A run is what its profiles say, not what the environment or the folder adds to them. */
void load_profiles(const myelin_bench_prepare &prepare)
{
  for (const char *variable :
       {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_ENVIRONMENT_FILE",
        "FASTDDS_BUILTIN_TRANSPORTS", "FASTDDS_STATISTICS", "ROS_DISCOVERY_SERVER"})
    (void)unsetenv(variable);
  (void)setenv("SKIP_DEFAULT_XML_FILE", "1", 1);
  char *text = nullptr;
  if (myelin_fastdds_profiles(&prepare, FASTDDS_VERSION_MAJOR, FASTDDS_SENDS_WHOLE, &text) != 0)
    throw myelin_bench::ErrorIsSet();
  const std::string profiles = text;
  myelin_fastdds_free(text);
  auto *factory = DomainParticipantFactory::get_instance();
  check(factory->load_XML_profiles_string(profiles.data(), profiles.size()),
        "loading the profiles", "its own message is in this run's log");
}

Instant now()
{
  return std::chrono::steady_clock::now();
}

std::uint64_t left_ns(std::uint64_t until_ns)
{
  return std::min(myelin_bench_left_ns(until_ns), WAIT_NS_MAX);
}

myelin::Transport transport_of(const std::string &system)
{
  return {system != "fastdds.udp", system == MYELIN_FASTDDS_DATASHARING};
}

/* Whether the publisher goes on without pause and without heed of the subscriber. By data sharing it
 * then overwrites what the subscriber is just reading in place. So the subscriber copies, and Fast DDS
 * looks whether the copy is whole. */
bool overtakes(const myelin_bench_prepare &prepare)
{
  const bool is_pressed =
      prepare.workload == MYELIN_BENCH_FLOOD || prepare.workload == MYELIN_BENCH_STARTUP;
  return is_pressed && !prepare.reliable;
}

int open_link(const myelin_bench_prepare *prepare, void **context)
{
  return guarded([&] {
    const Instant until =
        now() + std::chrono::nanoseconds(std::min(prepare->match_timeout_ns, WAIT_NS_MAX));
    load_profiles(*prepare);
    const myelin::Transport transport = transport_of(prepare->system);
    auto link = std::make_unique<Link>(*prepare);
    link->awaits_acknowledgements = prepare->is_ping && prepare->reliable;
    const bool is_reliable = !prepare->one_way || prepare->reliable;
    link->lingers_at_close = prepare->is_ping ? transport.data_sharing : is_reliable;
    if (transport.data_sharing && overtakes(*prepare))
      link->copy.resize(link->message_bytes);
    link->endpoints.wait_until_matched(until);
    link->endpoints.prove(transport);
    *context = link.release();
    return 0;
  });
}

void close_link(void *context)
{
  (void)guarded([&] {
    const std::unique_ptr<Link> link(static_cast<Link *>(context));
    if (link->taken_from != nullptr)
      (void)link->taken_from->return_loan(link->data, link->infos);
    if (link->loan != nullptr)
      (void)link->endpoints.writers[link->selected]->discard_loan(link->loan);
    if (link->lingers_at_close)
      std::this_thread::sleep_for(LINGER);
    return 0;
  });
}

void check_size(const Link &link, std::size_t bytes)
{
  if (bytes != link.message_bytes)
    throw Failure("a message of another size than prepared");
}

/* Whether there may be room after all. With KEEP_ALL, 2.9 says `timeout` at once where one
 * acknowledgement has emptied a history that was full: it looks for the oldest sample in order to remove
 * it, and finds none. 3.1 says `out of resources` where it has not yet freed samples that are
 * acknowledged. */
bool is_full(const ReturnCode_t &code)
{
  return code == myelin::codes::RETCODE_TIMEOUT || code == myelin::codes::RETCODE_OUT_OF_RESOURCES;
}

ReturnCode_t write_again(DataWriter *writer, void *message)
{
  const Instant until = now() + WRITE_BLOCKS_MAX;
  for (;;) {
    const ReturnCode_t code = writer->write(message, HANDLE_NIL);
    if (!is_full(code) || now() >= until)
      return code;
    std::this_thread::yield();
  }
}

bool is_end_of_stream(const void *message)
{
  std::uint64_t number = 0;
  std::memcpy(&number, message, sizeof number);
  return number == MYELIN_BENCH_END_OF_STREAM;
}

void write(Link &link, void *message)
{
  /* What is written last is reliable, too. It is waited for here, before the other side is told to
   * end: a writer of 2.9 that is still sending to a reader when that goes locks itself up for good,
   * its flow controller's lock against its own (StatefulWriter::matched_reader_remove). */
  const bool is_last = link.awaits_acknowledgements && is_end_of_stream(message);
  DataWriter *writer = link.endpoints.writers[link.selected];
  ReturnCode_t code = writer->write(message, HANDLE_NIL);
  if (is_full(code))
    code = write_again(writer, message);
  check(code, "writing", "reliable: a subscriber has taken nothing for max_blocking_time");
  if (is_last)
    link.endpoints.wait_for_acknowledgments();
}

int loan(void *context, std::size_t bytes, void **memory)
{
  return guarded([&] {
    Link &link = *static_cast<Link *>(context);
    check_size(link, bytes);
    check(link.endpoints.writers[link.selected]->loan_sample(link.loan), "no memory to loan");
    *memory = link.loan;
    return 0;
  });
}

int publish_loan(void *context)
{
  return guarded([&] {
    Link &link = *static_cast<Link *>(context);
    write(link, link.loan);
    link.loan = nullptr;
    return 0;
  });
}

int publish(void *context, const void *message, std::size_t bytes)
{
  return guarded([&] {
    Link &link = *static_cast<Link *>(context);
    check_size(link, bytes);
    /* Not written to: `serialize` alone gets it. */
    write(link, const_cast<void *>(message));
    return 0;
  });
}

void select_topic(void *context, std::uint32_t topic)
{
  static_cast<Link *>(context)->selected = topic;
}

int wait_for_sample(void *context, std::uint64_t until_ns)
{
  return guarded([&] {
    Link &link = *static_cast<Link *>(context);
    const std::uint64_t left = left_ns(until_ns);
    if (link.endpoints.readers.size() > 1)
      return int(link.endpoints.inbox.wait_until(now() + std::chrono::nanoseconds(left)));
    constexpr std::uint64_t SECOND_NS = 1'000'000'000;
    const Duration_t limit(static_cast<std::int32_t>(left / SECOND_NS),
                           static_cast<std::uint32_t>(left % SECOND_NS));
    return int(link.endpoints.readers.front()->wait_for_unread_message(limit));
  });
}

/* The next sample of `reader`, as a loan. */
bool take_loan(Link &link, DataReader *reader)
{
  for (;;) {
    const ReturnCode_t code = reader->take(link.data, link.infos, 1);
    if (code == myelin::codes::RETCODE_NO_DATA)
      return false;
    check(code, "taking");
    link.taken_from = reader;
    if (link.infos[0].valid_data)
      return true;
    /* Not a sample but word of a writer that has gone. */
    link.taken_from = nullptr;
    check(reader->return_loan(link.data, link.infos), "returning a loan");
  }
}

/* As take_loan, copied: Fast DDS looks before and after whether the writer has overwritten it. */
bool take_copy(Link &link, DataReader *reader)
{
  for (;;) {
    SampleInfo info;
    const ReturnCode_t code = reader->take_next_sample(link.copy.data(), &info);
    if (code == myelin::codes::RETCODE_NO_DATA)
      return false;
    check(code, "taking");
    if (info.valid_data)
      return true;
  }
}

bool take_from(Link &link, DataReader *reader)
{
  return link.copy.empty() ? take_loan(link, reader) : take_copy(link, reader);
}

bool take_any(Link &link)
{
  if (link.endpoints.readers.size() == 1)
    return take_from(link, link.endpoints.readers.front());
  std::uint32_t number = 0;
  while (link.endpoints.inbox.pop(number)) {
    DataReader *reader = link.endpoints.readers[number];
    if (!take_from(link, reader))
      continue;
    /* What comes from now on announces itself; what was there already does not. */
    if (reader->get_unread_count() > 0)
      link.endpoints.inbox.push(number);
    return true;
  }
  return false;
}

int take(void *context, std::uint64_t, const void **message, std::size_t *bytes)
{
  return guarded([&] {
    Link &link = *static_cast<Link *>(context);
    if (!take_any(link))
      return 0;
    *message = link.copy.empty() ? &link.data[0] : link.copy.data();
    *bytes = link.message_bytes;
    return 1;
  });
}

void release(void *context)
{
  (void)guarded([&] {
    Link &link = *static_cast<Link *>(context);
    if (DataReader *reader = std::exchange(link.taken_from, nullptr))
      check(reader->return_loan(link.data, link.infos), "returning a loan");
    return 0;
  });
}

} // namespace

extern "C" {
void myelin_fastdds_probe(myelin_bench_system *system)
{
  auto *factory = &DomainParticipantFactory::get_instance;
  system->version = library_version(reinterpret_cast<const void *>(factory), FASTDDS_VERSION_STR);
}

const myelin_bench_link myelin_fastdds_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan, publish_loan, publish, wait_for_sample, take, release,
    close_link, select_topic, nullptr, nullptr, nullptr, nullptr};
}
