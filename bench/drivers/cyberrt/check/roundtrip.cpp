/* A round trip over CyberRT, written directly against its API, without the kit and the driver's
 * adaptor, which are compared with it. The settings are the driver's, and the message is that of
 * cyber_benchmark. Pong answers in CyberRT's callback; ping waits for the message that its callback
 * stores.
 *
 *     roundtrip pong DOMAIN RUN PAYLOAD shm|shm-multicast|arena|rtps
 *     roundtrip ping DOMAIN RUN PAYLOAD shm|shm-multicast|arena|rtps [MESSAGES [WARMUP]]
 *
 * Both print `ready` when messages go both ways. Ping then waits for a line on standard input,
 * exchanges WARMUP and then MESSAGES messages, and prints p50 and p99 of the whole round trip in
 * nanoseconds (nearest rank). Pong ends when its standard input closes. DOMAIN is not used.
 * CYBER_PATH is a folder to write to. Run it with its own network and System V objects; an arena
 * needs the same addresses in both processes.
 */
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <sched.h>
#include <unistd.h>

#include <gflags/gflags.h>

#include "cyber/benchmark/benchmark_msg.pb.h"
#include "cyber/cyber.h"

DECLARE_int32(stderrthreshold);
DECLARE_string(log_dir);

namespace {

using apollo::cyber::benchmark::BenchmarkMsg;
using Clock = std::chrono::steady_clock;
using Message = std::shared_ptr<BenchmarkMsg>;
using Writer = std::shared_ptr<apollo::cyber::Writer<BenchmarkMsg>>;

/* Ping sends only this until it is answered. */
constexpr std::uint64_t PROBE = UINT64_MAX;
constexpr std::chrono::milliseconds PROBE_EVERY(5);
constexpr std::chrono::seconds ANSWER_WITHIN(2);
/* Words before the bytes of the driver's messages in an arena: their number, and an unused one. */
constexpr int HEADER_WORDS = 2;
/* Messages that either side keeps; the kit's default. With RTPS each has its own memory. */
constexpr int DEPTH = 16;

[[noreturn]] void die(const char *what)
{
  std::cerr << what << std::endl;
  _exit(1);
}

/* CyberRT's own values except for the transport, and in an arena blocks of the size of a message.
 */
void configure(const std::string &run, std::size_t bytes, const std::string &mode)
{
  const std::filesystem::path folder = std::getenv("CYBER_PATH");
  std::filesystem::create_directories(folder / "conf");
  std::ofstream file(folder / "conf/cyber.pb.conf");
  file << "transport_conf { communication_mode { same_proc: INTRA diff_proc: "
       << (mode == "rtps" ? "RTPS" : "SHM")
       << " diff_host: RTPS } participant_attr { lease_duration: 12 announcement_period: 3 "
          "domain_id_gain: 250 port_base: 7400 } shm_conf { notifier_type: \""
       << (mode == "shm-multicast" ? "multicast" : "condition")
       << "\" shm_type: \"xsi\" shm_locator { ip: \"239.255.0.100\" port: 8888 } ";
  if (mode == "arena") {
    file << "arena_shm_conf { ";
    for (const char *channel : {"/ping/", "/pong/"})
      file << "arena_channel_conf { channel_name: \"" << channel << run << "\" max_msg_size: "
           << (bytes + (64 << 10) + 4095) / 4096 * 4096 << " max_pool_size: 32 } ";
    file << "} ";
  }
  file << "} } run_mode_conf { run_mode: MODE_REALITY clock_mode: MODE_CYBER } "
          "scheduler_conf { routine_num: 100 default_proc_num: 16 }\n";
  if (!file.flush())
    die("cannot write the configuration");
  FLAGS_log_dir = folder;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  google::SetCommandLineOption("bvar_dump_file", (folder / "monitor.data").c_str());
}

/* Sends bytes; `buffer` is refilled for each message that is serialised. */
void send(const Writer &writer, bool is_arena, Message &buffer, const std::uint8_t *bytes,
          std::size_t count)
{
  if (!is_arena) {
    buffer->mutable_data_bytes()->assign(reinterpret_cast<const char *>(bytes), count);
    if (!writer->Write(buffer))
      die("Write");
    return;
  }
#ifdef WITH_ARENAS
  const int words = HEADER_WORDS + static_cast<int>((count + 3) / 4);
  const auto message = writer->AcquireMessage();
  message->mutable_data()->Clear();
  message->mutable_data()->Reserve(words);
  std::uint32_t *data = message->mutable_data()->AddNAlreadyReserved(words);
  data[0] = static_cast<std::uint32_t>(count);
  data[1] = 0;
  std::memcpy(data + HEADER_WORDS, bytes, count);
  if (!writer->Write(message))
    die("Write");
#else
  die("this CyberRT has no arenas");
#endif
}

const std::uint8_t *bytes_of(const BenchmarkMsg &message, bool is_arena)
{
  const void *bytes = message.data_bytes().data();
  if (is_arena)
    bytes = message.data().data() + HEADER_WORDS;
  return static_cast<const std::uint8_t *>(bytes);
}

std::uint64_t number_of(const std::uint8_t *bytes)
{
  std::uint64_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

/* The latest message. */
struct Inbox {
  std::mutex mutex;
  std::condition_variable has_come;
  Message message;

  void put(const Message &came)
  {
    const std::lock_guard<std::mutex> guard(mutex);
    message = came;
    has_come.notify_one();
  }

  Message take(std::chrono::milliseconds limit)
  {
    std::unique_lock<std::mutex> guard(mutex);
    has_come.wait_for(guard, limit, [this] { return message != nullptr; });
    return std::move(message);
  }
};

/* Gives all threads the priority with which this process was started. CyberRT does not start on one
 * core under SCHED_FIFO, because it spins until each of its threads has run. */
void take_priority(int policy, const sched_param &priority)
{
  for (const auto &thread : std::filesystem::directory_iterator("/proc/self/task"))
    sched_setscheduler(std::atoi(thread.path().filename().c_str()), policy, &priority);
}

} // namespace

int main(int count, char **arguments)
{
  if (count < 6)
    die("usage: roundtrip ping|pong DOMAIN RUN PAYLOAD shm|shm-multicast|arena|rtps [MESSAGES [WARMUP]]");
  const bool is_ping = std::string(arguments[1]) == "ping";
  const std::string run = arguments[3], mode = arguments[5];
  const bool is_arena = mode == "arena";
  const std::size_t bytes = sizeof PROBE + std::stoul(arguments[4]);
  const auto number = [&](int index, std::size_t otherwise) {
    return count > index ? std::stoul(arguments[index]) : otherwise;
  };
  const std::size_t messages = number(6, 10'000), warmup = number(7, 1'000);

  const int policy = sched_getscheduler(0);
  sched_param priority{};
  const sched_param none{};
  sched_getparam(0, &priority);
  sched_setscheduler(0, SCHED_OTHER, &none);
  configure(run, bytes, mode);
  if (!apollo::cyber::Init("roundtrip"))
    die("Init");
  const auto node = apollo::cyber::CreateNode(arguments[1]);
  apollo::cyber::ReaderConfig config;
  config.channel_name = (is_ping ? "/pong/" : "/ping/") + run;
  config.pending_queue_size = DEPTH;
  config.qos_profile.set_depth(DEPTH);
  apollo::cyber::proto::RoleAttributes role;
  role.set_channel_name((is_ping ? "/ping/" : "/pong/") + run);
  *role.mutable_qos_profile() = config.qos_profile;
  const auto writer = node->CreateWriter<BenchmarkMsg>(role);
  Inbox inbox;
  auto buffer = std::make_shared<BenchmarkMsg>();
  const auto reader = node->CreateReader<BenchmarkMsg>(config, [&](const Message &message) {
    const std::uint8_t *came = bytes_of(*message, is_arena);
    const bool is_probe = number_of(came) == PROBE;
    if (!is_ping)
      send(writer, is_arena, buffer, came, is_probe ? sizeof PROBE : bytes);
    if (is_ping || is_probe)
      inbox.put(message);
  });

  std::vector<std::uint8_t> sent(bytes, 1);
  std::memcpy(sent.data(), &PROBE, sizeof PROBE);
  do {
    if (is_ping)
      send(writer, is_arena, buffer, sent.data(), sizeof PROBE);
  } while (!inbox.take(PROBE_EVERY));
  take_priority(policy, priority);
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  if (!is_ping)
    _exit(0);

  std::vector<std::int64_t> took;
  took.reserve(messages);
  for (std::uint64_t sequence = 0; sequence < warmup + messages; sequence++) {
    std::memcpy(sent.data(), &sequence, sizeof sequence);
    const auto begin = Clock::now();
    send(writer, is_arena, buffer, sent.data(), bytes);
    Message answer;
    Clock::time_point end;
    do {
      answer = inbox.take(ANSWER_WITHIN);
      end = Clock::now();
      if (!answer)
        die("no answer");
    } while (number_of(bytes_of(*answer, is_arena)) == PROBE);
    if (std::memcmp(bytes_of(*answer, is_arena), sent.data(), bytes) != 0)
      die("an answer to another message");
    if (sequence >= warmup)
      took.push_back((end - begin).count());
  }
  std::sort(took.begin(), took.end());
  const auto rank = [&](std::size_t share) { return took[(took.size() * share + 99) / 100 - 1]; };
  std::cout << "p50 " << rank(50) << " p99 " << rank(99) << std::endl;
  /* CyberRT's own shutdown takes up to 9 s. */
  _exit(0);
}
