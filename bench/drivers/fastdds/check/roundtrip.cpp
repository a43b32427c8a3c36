/* A round trip over Fast DDS written straight against its API, without the kit and without the
 * driver's adaptor: what they are checked against. The profiles are those that the driver writes,
 * loaded by Fast DDS itself from the file that FASTRTPS_DEFAULT_PROFILES_FILE, from Fast DDS 3 on
 * FASTDDS_DEFAULT_PROFILES_FILE, names.
 *
 *   roundtrip pong DOMAIN RUN PAYLOAD [loan]
 *   roundtrip ping DOMAIN RUN PAYLOAD [loan] [MESSAGES [WARMUP]]
 *
 * `loan` is for data sharing: messages are written into loans. Samples are read as loans always.
 * Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
 * and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
 * (nearest rank). Pong ends when ping has gone.
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include "../src/versions.hpp"

using namespace eprosima::fastdds::dds;
using myelin::Duration_t;
using myelin::InstanceHandle_t;
using myelin::SerializedPayload_t;

namespace {

constexpr std::size_t SEQUENCE_BYTES = 8;
constexpr std::size_t STAMP_BYTES = 1024;
constexpr std::uint32_t ENCAPSULATION_BYTES = SerializedPayload_t::representation_header_size;
constexpr std::chrono::seconds ANSWER_WITHIN(2);
constexpr std::int32_t MATCH_WITHIN_S = 10;
constexpr std::chrono::milliseconds LOOK_AROUND(100);
/* For pong to give its last loan back: Fast DDS 2.9 frees it when its publisher leaves. */
constexpr std::chrono::milliseconds LINGER(100);

/* So many bytes, plain. */
class Octets : public TopicDataType {
public:
  explicit Octets(std::uint32_t bytes) : bytes_(bytes), serialised_bytes_(bytes + ENCAPSULATION_BYTES)
  {
    const std::string name = "myelin::Octets" + std::to_string(bytes);
#if FASTDDS_VERSION_MAJOR >= 3
    set_name(name);
    max_serialized_type_size = serialised_bytes_;
#else
    setName(name.c_str());
    m_typeSize = serialised_bytes_;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
#endif
  }

  bool is_bounded() const override { return true; }

#if FASTDDS_VERSION_MAJOR >= 3
  bool serialize(const void *data, SerializedPayload_t &payload, DataRepresentationId_t) override
  {
    return write(data, payload);
  }

  bool deserialize(SerializedPayload_t &payload, void *data) override
  {
    return read(payload, data);
  }

  std::uint32_t calculate_serialized_size(const void *, DataRepresentationId_t) override
  {
    return serialised_bytes_;
  }

  void *create_data() override { return new std::uint8_t[bytes_]; }
  void delete_data(void *data) override { delete[] static_cast<std::uint8_t *>(data); }
  bool compute_key(SerializedPayload_t &, InstanceHandle_t &, bool) override { return false; }
  bool compute_key(const void *, InstanceHandle_t &, bool) override { return false; }
  bool is_plain(DataRepresentationId_t) const override { return true; }
#else
  bool serialize(void *data, SerializedPayload_t *payload) override
  {
    return write(data, *payload);
  }

  bool deserialize(SerializedPayload_t *payload, void *data) override
  {
    return read(*payload, data);
  }

  std::function<std::uint32_t()> getSerializedSizeProvider(void *) override
  {
    return [this] { return serialised_bytes_; };
  }

  void *createData() override { return new std::uint8_t[bytes_]; }
  void deleteData(void *data) override { delete[] static_cast<std::uint8_t *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
  bool is_plain() const override { return true; }
#endif

private:
  bool write(const void *data, SerializedPayload_t &payload) const
  {
    payload.data[0] = 0;
    payload.data[1] = CDR_LE;
    payload.data[2] = payload.data[3] = 0;
    payload.encapsulation = CDR_LE;
    std::memcpy(payload.data + ENCAPSULATION_BYTES, data, bytes_);
    payload.length = serialised_bytes_;
    return true;
  }

  bool read(const SerializedPayload_t &payload, void *data) const
  {
    if (payload.length != serialised_bytes_)
      return false;
    std::memcpy(data, payload.data + ENCAPSULATION_BYTES, bytes_);
    return true;
  }

  std::uint32_t bytes_;
  std::uint32_t serialised_bytes_;
};

[[noreturn]] void die(const char *what)
{
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

void check(ReturnCode_t code, const char *what)
{
  if (code != myelin::codes::RETCODE_OK)
    die(what);
}

template <typename T> T *made(T *entity, const char *what)
{
  if (entity == nullptr)
    die(what);
  return entity;
}

struct Ends {
  std::size_t bytes;
  bool loans;
  DomainParticipant *participant;
  DataWriter *writer;
  DataReader *reader;
};

bool has_writer(const Ends &ends)
{
  SubscriptionMatchedStatus status;
  check(ends.reader->get_subscription_matched_status(status), "subscription status");
  return status.current_count > 0;
}

bool has_reader(const Ends &ends)
{
  PublicationMatchedStatus status;
  check(ends.writer->get_publication_matched_status(status), "publication status");
  return status.current_count > 0;
}

void wait_until_matched(const Ends &ends)
{
  StatusCondition &in = ends.reader->get_statuscondition();
  StatusCondition &out = ends.writer->get_statuscondition();
  in.set_enabled_statuses(StatusMask::subscription_matched());
  out.set_enabled_statuses(StatusMask::publication_matched());
  WaitSet waitset;
  waitset.attach_condition(in);
  waitset.attach_condition(out);
  for (;;) {
    /* Both are read each time: a condition stays triggered until its status has been, and a wait
     * that returns at once would, under SCHED_FIFO, keep Fast DDS's own threads from the CPU. */
    const bool is_written = has_writer(ends);
    const bool is_read = has_reader(ends);
    if (is_written && is_read)
      return;
    ConditionSeq active;
    check(waitset.wait(active, Duration_t(MATCH_WITHIN_S, 0)), "no other side");
  }
}

Ends open_ends(bool is_ping, std::uint32_t domain, const std::string &run, std::size_t bytes)
{
  Ends ends{};
  ends.bytes = bytes;
  auto *factory = DomainParticipantFactory::get_instance();
  ends.participant =
      made(factory->create_participant_with_profile(domain, "myelin"), "participant");
  TypeSupport type(new Octets(static_cast<std::uint32_t>(bytes)));
  check(type.register_type(ends.participant), "type");
  const std::string names[] = {"ping_" + run, "pong_" + run};
  const auto topic = [&](const std::string &name) {
    return made(ends.participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT),
                "topic");
  };
  Topic *out = topic(names[is_ping ? 0 : 1]);
  Topic *in = topic(names[is_ping ? 1 : 0]);
  Subscriber *subscriber =
      made(ends.participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
  ends.reader = made(subscriber->create_datareader_with_profile(in, "myelin"), "reader");
  Publisher *publisher = made(ends.participant->create_publisher(PUBLISHER_QOS_DEFAULT),
                               "publisher");
  ends.writer = made(publisher->create_datawriter_with_profile(out, "myelin"), "writer");
  wait_until_matched(ends);
  return ends;
}

void write_message(const Ends &ends, const std::uint8_t *message)
{
  if (!ends.loans) {
    check(ends.writer->write(const_cast<std::uint8_t *>(message), HANDLE_NIL), "write");
    return;
  }
  void *loan = nullptr;
  check(ends.writer->loan_sample(loan), "loan_sample");
  std::memcpy(loan, message, ends.bytes);
  check(ends.writer->write(loan, HANDLE_NIL), "write");
}

/* Whether a message came within `limit`; `use` is called with its bytes, still loaned. Fast DDS 2.9
 * may tell of an unread message and have none to take until others of its threads have run. */
template <typename Use>
bool read_message(const Ends &ends, std::chrono::nanoseconds limit, Use use)
{
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration<long double>(until - Clock::now()).count();
    if (left <= 0 || !ends.reader->wait_for_unread_message(Duration_t(left)))
      return false;
    LoanableSequence<std::uint8_t> data;
    SampleInfoSeq infos;
    const ReturnCode_t code = ends.reader->take(data, infos, 1);
    if (code == myelin::codes::RETCODE_NO_DATA) {
      std::this_thread::yield();
      continue;
    }
    check(code, "take");
    const bool valid = infos[0].valid_data;
    if (valid)
      use(&data[0]);
    check(ends.reader->return_loan(data, infos), "return_loan");
    if (valid)
      return true;
    if (!has_writer(ends))
      return false;
  }
}

void pong(const Ends &ends)
{
  do {
    const auto answer = [&](const std::uint8_t *message) { write_message(ends, message); };
    while (read_message(ends, LOOK_AROUND, answer))
      ;
  } while (has_writer(ends));
}

std::uint64_t nearest_rank(const std::vector<std::uint64_t> &sorted, std::size_t percent)
{
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

void ping(const Ends &ends, std::size_t messages, std::size_t warmup)
{
  using Clock = std::chrono::steady_clock;
  std::vector<std::uint64_t> round_trips_ns;
  round_trips_ns.reserve(messages);
  std::vector<std::uint8_t> message(ends.bytes);
  for (std::size_t at = 0; at < message.size(); at++)
    message[at] = static_cast<std::uint8_t>(at * 131);
  for (std::uint64_t number = 0; number < warmup + messages; number++) {
    for (std::size_t at = 0; at + sizeof number <= message.size(); at += STAMP_BYTES)
      std::memcpy(&message[at], &number, sizeof number);
    const std::size_t compared = number < warmup ? message.size() : sizeof number;
    const auto begin = Clock::now();
    write_message(ends, message.data());
    auto end = begin;
    const auto use = [&](const std::uint8_t *answer) {
      end = Clock::now();
      if (std::memcmp(answer, message.data(), compared) != 0)
        die("an answer to another message, or a damaged one");
    };
    if (!read_message(ends, ANSWER_WITHIN, use))
      die("no answer");
    if (number >= warmup)
      round_trips_ns.push_back(static_cast<std::uint64_t>((end - begin).count()));
  }
  std::sort(round_trips_ns.begin(), round_trips_ns.end());
  std::printf("p50 %llu p99 %llu\n",
              static_cast<unsigned long long>(nearest_rank(round_trips_ns, 50)),
              static_cast<unsigned long long>(nearest_rank(round_trips_ns, 99)));
}

} // namespace

int main(int argc, char **argv)
{
  if (argc < 5)
    die("usage: roundtrip ping|pong DOMAIN RUN PAYLOAD [loan] [MESSAGES [WARMUP]]");
  /* Standard output is for our own lines. */
  Log::ClearConsumers();
  auto consumer = std::make_unique<StdoutErrConsumer>();
  consumer->stderr_threshold(Log::Kind::Info);
  Log::RegisterConsumer(std::move(consumer));
  const bool is_ping = std::strcmp(argv[1], "ping") == 0;
  const bool loans = argc > 5 && std::strcmp(argv[5], "loan") == 0;
  const int numbers = loans ? 6 : 5;
  const std::size_t messages = argc > numbers ? std::strtoul(argv[numbers], nullptr, 10) : 10000;
  const std::size_t warmup =
      argc > numbers + 1 ? std::strtoul(argv[numbers + 1], nullptr, 10) : 1000;
  if (messages == 0)
    die("MESSAGES is at least 1");
  Ends ends = open_ends(is_ping, static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)),
                        argv[3], SEQUENCE_BYTES + std::strtoul(argv[4], nullptr, 10));
  ends.loans = loans;
  std::printf("ready\n");
  std::fflush(stdout);
  if (!is_ping)
    pong(ends);
  else if (std::getchar() != EOF)
    ping(ends, messages, warmup);
  std::fflush(stdout);
  if (is_ping)
    std::this_thread::sleep_for(LINGER);
  check(ends.participant->delete_contained_entities(), "delete_contained_entities");
  check(DomainParticipantFactory::get_instance()->delete_participant(ends.participant), "delete");
  return 0;
}
