/* The adaptor against CyberRT.
 *
 * A message has the type of CyberRT's own cyber_benchmark: bytes, or in an arena numbers of 32
 * bits, because bytes would be in the publisher's heap there. The kit's loan is that message's
 * data.
 *
 * A message without data is a probe. A publisher sends probes until every subscriber has answered
 * one, because CyberRT reports subscribers before messages reach them. Answers use a separate
 * channel.
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sched.h>
#include <unistd.h>

#include <gflags/gflags.h>

#include "cyber/benchmark/benchmark_msg.pb.h"
#include "cyber/cyber.h"
#include "link.h"
#include "myelin_bench_link.hpp"

DECLARE_int32(stderrthreshold);
DECLARE_string(log_dir);

namespace {

using apollo::cyber::Node;
using apollo::cyber::ReaderConfig;
using apollo::cyber::benchmark::BenchmarkMsg;
using myelin_bench::Failure;
using myelin_bench::Receiver;
using Reader = std::shared_ptr<apollo::cyber::Reader<BenchmarkMsg>>;
using Writer = std::shared_ptr<apollo::cyber::Writer<BenchmarkMsg>>;
using Message = std::shared_ptr<BenchmarkMsg>;

/* In an arena: the number of bytes, an unused number, the bytes, up to 3 bytes of padding. */
constexpr int HEADER_WORDS = 2;
/* What a message in an arena needs in addition to its bytes: the message object and the arena's own
 * data. */
constexpr std::uint64_t ARENA_EXTRA_BYTES = 64 << 10;
/* The value of CyberRT's example. */
constexpr int ARENA_BLOCKS = 32;
constexpr auto PROBE_EVERY = std::chrono::milliseconds(5);

/* The order of a run, kept after `open`. */
struct Plan {
  explicit Plan(const myelin_bench_prepare &prepare)
      : system(prepare.system), run(prepare.run),
        directory(std::string(prepare.directory) + "/" + prepare.file_prefix + "cyberrt-" +
                  prepare.run + (prepare.is_ping ? "-ping" : "-pong") +
                  std::to_string(prepare.index)),
        own(prepare.own ? prepare.own : "127.0.0.1"), port(prepare.port),
        message_bytes(prepare.message_bytes), depth(std::max(prepare.depth, 1u)),
        index(prepare.index), others(prepare.others), is_ping(prepare.is_ping),
        publishes(prepare.publishes != 0), subscribes(prepare.subscribes != 0),
        is_across(prepare.peer != nullptr)
  {
  }

  bool is(const char *name) const { return system == name; }
  bool is_serialised() const { return !is(MYELIN_CYBERRT_ARENA) && !is(MYELIN_CYBERRT_INTRA); }
  std::string channel(bool of_ping) const { return (of_ping ? "/ping/" : "/pong/") + run; }

  std::string system, run, directory, own;
  std::uint16_t port;
  std::uint64_t message_bytes;
  std::uint32_t depth, index, others;
  bool is_ping, publishes, subscribes, is_across;
};

/* The file that CyberRT reads: its own values, except for those that define a system. */
std::string configuration(const Plan &plan)
{
  /* The ports of a run across hosts, with domain 0. */
  const unsigned port_base = plan.is_across ? plan.port : 7400;
  std::string text = "transport_conf {\n  communication_mode { same_proc: INTRA diff_proc: ";
  text += plan.is(MYELIN_CYBERRT_RTPS) ? "RTPS" : "SHM";
  text += " diff_host: RTPS }\n  participant_attr { lease_duration: 12 announcement_period: 3 "
          "domain_id_gain: 250 port_base: " +
          std::to_string(port_base) + " }\n  shm_conf {\n    notifier_type: \"";
  text += plan.is(MYELIN_CYBERRT_SHM_MULTICAST) ? "multicast" : "condition";
  text += "\" shm_type: \"xsi\" shm_locator { ip: \"239.255.0.100\" port: 8888 }\n";
  if (plan.is(MYELIN_CYBERRT_ARENA)) {
    text += "    arena_shm_conf {\n";
    const std::uint64_t block_bytes = (plan.message_bytes + ARENA_EXTRA_BYTES + 4095) / 4096 * 4096;
    for (const bool of_ping : {true, false})
      text += "      arena_channel_conf { channel_name: \"" + plan.channel(of_ping) +
              "\" max_msg_size: " + std::to_string(block_bytes) +
              " max_pool_size: " + std::to_string(ARENA_BLOCKS) + " }\n";
    text += "    }\n";
  }
  return text + "  }\n}\nrun_mode_conf { run_mode: MODE_REALITY clock_mode: MODE_CYBER }\n"
                "scheduler_conf { routine_num: 100 default_proc_num: 16 }\n";
}

/* Starting and ending under SCHED_FIFO on one core would never finish. CyberRT spins until each
 * thread that it starts has run, and a thread of Fast DDS sends as long as a writer is about to
 * remove a sample. So CyberRT starts, announces its ends, and stops under SCHED_OTHER; in between
 * all threads have the caller's policy. */
class NormalPriority {
public:
  NormalPriority() : policy_(sched_getscheduler(0))
  {
    sched_getparam(0, &priority_);
    give(SCHED_OTHER, {});
  }

  ~NormalPriority() { give(policy_, priority_); }

  NormalPriority(const NormalPriority &) = delete;
  NormalPriority &operator=(const NormalPriority &) = delete;

private:
  static void give(int policy, const sched_param &priority)
  {
    std::error_code error;
    for (const auto &thread : std::filesystem::directory_iterator("/proc/self/task", error))
      sched_setscheduler(std::atoi(thread.path().filename().c_str()), policy, &priority);
  }

  int policy_;
  sched_param priority_{};
};

/* CyberRT's own shutdown joins 16 threads one by one, which takes up to 9 s. All that it would
 * remove vanishes with the namespaces of the run. */
void leave(int status, void *)
{
  std::fflush(nullptr);
  _exit(status);
}

/* The driver alone determines a run, not the user's environment. */
void start(const Plan &plan)
{
  std::filesystem::create_directories(plan.directory + "/conf");
  std::ofstream file(plan.directory + "/conf/cyber.pb.conf");
  file << configuration(plan);
  file.close();
  if (!file)
    throw Failure("cannot write " + plan.directory + "/conf/cyber.pb.conf");
  unsetenv("APOLLO_RUNTIME_PATH");
  setenv("CYBER_PATH", plan.directory.c_str(), 1);
  setenv("CYBER_IP", plan.own.c_str(), 1);
  setenv("CYBER_DOMAIN_ID", plan.is_across ? "0" : "80", 1);
  FLAGS_log_dir = plan.directory;
  /* Suppresses CyberRT's messages about each writer, whose counters have the same names. */
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  /* The file of the statistics that bvar writes every 10 s; by default it is in the working
   * directory. Version 9 has none. */
  google::SetCommandLineOption("bvar_dump_file", (plan.directory + "/monitor.data").c_str());
  if (!apollo::cyber::Init("myelin-driver-cyberrt"))
    throw Failure("cyber::Init failed", "see its log in the folder of this run");
}

apollo::cyber::proto::RoleAttributes attributes(const Plan &plan, const std::string &channel)
{
  apollo::cyber::proto::RoleAttributes role;
  role.set_channel_name(channel);
  auto *qos = role.mutable_qos_profile();
  /* CyberRT's default, except for the depth. */
  qos->set_history(apollo::cyber::proto::QosHistoryPolicy::HISTORY_KEEP_LAST);
  qos->set_depth(plan.depth);
  qos->set_reliability(apollo::cyber::proto::QosReliabilityPolicy::RELIABILITY_RELIABLE);
  qos->set_durability(apollo::cyber::proto::QosDurabilityPolicy::DURABILITY_VOLATILE);
  return role;
}

/* A reader, and its callback, which calls the kit or keeps messages for `take`. */
class Subscription final : public Receiver {
public:
  Subscription(Node &node, const Plan &plan, const std::string &channel)
      : is_arena_(plan.is(MYELIN_CYBERRT_ARENA)), index_(plan.index)
  {
    if (!plan.is(MYELIN_CYBERRT_INTRA)) {
      answers_ = node.CreateWriter<BenchmarkMsg>(attributes(plan, channel + "/answers"));
      if (!answers_)
        throw Failure("cannot create a writer of " + channel + "/answers");
    }
    ReaderConfig config;
    config.channel_name = channel;
    config.qos_profile = attributes(plan, channel).qos_profile();
    config.pending_queue_size = plan.depth;
    const auto call = [this](const Message &message) { receive(message); };
    reader_ = node.CreateReader<BenchmarkMsg>(config, call);
    if (!reader_)
      throw Failure("cannot create a reader of " + channel);
  }

  ~Subscription() override
  {
    unlisten();
    const NormalPriority normal_priority;
    if (reader_)
      reader_->Shutdown();
  }

  /* The number of publishers whose probes have arrived. */
  std::size_t heard()
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    return heard_.size();
  }

  bool wait(std::uint64_t until_ns) override
  {
    std::unique_lock<std::mutex> guard(mutex_);
    const auto is_there = [this] { return !kept_.empty(); };
    for (;;) {
      const std::uint64_t now_ns = myelin_bench_now_ns();
      if (is_there())
        return true;
      if (now_ns >= until_ns)
        return false;
      const auto left = std::min<std::uint64_t>(until_ns - now_ns, 1'000'000'000);
      has_come_.wait_for(guard, std::chrono::nanoseconds(left), is_there);
    }
  }

  bool take(const void *&message, std::size_t &bytes) override
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (kept_.empty())
      return false;
    taken_ = std::move(kept_.front());
    kept_.pop_front();
    read(*taken_, message, bytes);
    return true;
  }

  void listen(myelin_bench_call call, void *context) override
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    call_ = call;
    context_ = context;
  }

  /* A call holds the lock, so none is running after this. */
  void unlisten() override
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    call_ = nullptr;
    is_over_ = true;
  }

private:
  void receive(const Message &message)
  {
    if (is_probe(*message))
      return answer(message->data(0));
    const std::lock_guard<std::mutex> guard(mutex_);
    if (call_) {
      const void *data = nullptr;
      std::size_t bytes = 0;
      read(*message, data, bytes);
      call_(context_, data, bytes);
    } else if (!is_over_) {
      kept_.push_back(message);
      has_come_.notify_one();
    }
  }

  /* A probe has one number, that of its publisher. */
  static bool is_probe(const BenchmarkMsg &message) { return message.data_size() == 1; }

  void answer(std::uint32_t publisher)
  {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      heard_.insert(publisher);
    }
    auto message = std::make_shared<BenchmarkMsg>();
    message->add_data(publisher);
    message->add_data(index_);
    answers_->Write(message);
  }

  void read(const BenchmarkMsg &message, const void *&data, std::size_t &bytes) const
  {
    if (!is_arena_) {
      data = message.data_bytes().data();
      bytes = message.data_bytes().size();
      return;
    }
    /* A torn message has any number of bytes; the kit reports a wrong number. */
    const std::size_t held = std::max(message.data_size() - HEADER_WORDS, 0);
    data = held ? message.data().data() + HEADER_WORDS : nullptr;
    bytes = held ? std::min<std::size_t>(message.data(0), held * sizeof(std::uint32_t)) : 0;
  }

  const bool is_arena_;
  const std::uint32_t index_;
  std::mutex mutex_;
  std::condition_variable has_come_;
  std::deque<Message> kept_;
  Message taken_;
  std::set<std::uint32_t> heard_;
  myelin_bench_call call_ = nullptr;
  void *context_ = nullptr;
  bool is_over_ = false;
  Writer answers_;
  Reader reader_;
};

/* Both directions of a role, or the single direction of a stream. */
class Link final : public myelin_bench::Link {
public:
  explicit Link(const myelin_bench_prepare &prepare) : plan_(prepare)
  {
    if (plan_.own.find(':') != std::string::npos)
      throw Failure("it supports only IPv4, but the address of the other host is " + plan_.own,
                    "hosts with IPv4 addresses on that interface");
    if (myelin_cyberrt_enter(&prepare) != 0)
      throw myelin_bench::ErrorIsSet{};
    start(plan_);
    node_ = apollo::cyber::CreateNode((plan_.is_ping ? "ping" : "pong") + std::to_string(plan_.index));
    if (!node_)
      throw Failure("cannot create a node");
    /* Registered after the exit handlers of CyberRT and Fast DDS, so that it runs first and
     * replaces them. */
    on_exit(leave, nullptr);
    if (plan_.publishes) {
      const std::string channel = plan_.channel(plan_.is_ping);
      const auto heed = [this](const Message &answer) {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (answer->data_size() == 2 && answer->data(0) == plan_.index)
          answered_.insert(answer->data(1));
      };
      if (!plan_.is(MYELIN_CYBERRT_INTRA)) {
        ReaderConfig config;
        config.channel_name = channel + "/answers";
        config.qos_profile = attributes(plan_, config.channel_name).qos_profile();
        config.pending_queue_size = 16;
        answers_ = node_->CreateReader<BenchmarkMsg>(config, heed);
      }
      writer_ = node_->CreateWriter<BenchmarkMsg>(attributes(plan_, channel));
      if (!writer_)
        throw Failure("cannot create a writer of " + channel);
    }
    if (plan_.subscribes)
      receiver_ = std::make_unique<Subscription>(*node_, plan_, plan_.channel(!plan_.is_ping));
  }

  ~Link() override
  {
    const NormalPriority normal_priority;
    receiver_.reset();
    if (answers_)
      answers_->Shutdown();
    if (writer_)
      writer_->Shutdown();
    node_.reset();
  }

  /* Sends probes until all subscribers have answered. */
  void match(const myelin_bench_prepare &prepare)
  {
    myelin_bench::wait_until_matched(prepare, PROBE_EVERY, [this] {
      const bool is_answered = !writer_ || this->is_answered();
      if (!is_answered) {
        auto probe = std::make_shared<BenchmarkMsg>();
        probe->add_data(plan_.index);
        writer_->Write(probe);
      }
      return is_answered && (!receiver_ || receiver_->heard() >= plan_.others);
    });
  }

  void *loan(std::size_t bytes) override
  {
#ifdef WITH_ARENAS
    if (plan_.is(MYELIN_CYBERRT_ARENA)) {
      const int words = HEADER_WORDS + static_cast<int>((bytes + 3) / 4);
      message_ = writer_->AcquireMessage();
      auto *data = message_->mutable_data();
      data->Clear();
      data->Reserve(words);
      std::uint32_t *first = data->AddNAlreadyReserved(words);
      first[0] = static_cast<std::uint32_t>(bytes);
      first[1] = 0;
      return first + HEADER_WORDS;
    }
#endif
    /* A subscriber in this process gets the message itself, so each message is new. Otherwise Write
     * serialises it before it returns, and it may be reused. */
    if (!message_)
      message_ = std::make_shared<BenchmarkMsg>();
    auto *data = message_->mutable_data_bytes();
    data->resize(bytes);
    return data->data();
  }

  void publish() override
  {
    if (!writer_->Write(message_))
      throw Failure("Write failed", "see its log in the folder of this run");
    if (!plan_.is_serialised())
      message_.reset();
  }

  std::unique_ptr<Receiver> subscribe() override
  {
    const NormalPriority normal_priority;
    return std::make_unique<Subscription>(*node_, plan_, plan_.channel(plan_.is_ping));
  }

  bool is_in_one_process() const { return plan_.is(MYELIN_CYBERRT_INTRA); }
  bool wait(std::uint64_t until_ns) override { return receiver_->wait(until_ns); }
  bool take(const void *&message, std::size_t &bytes) override
  {
    return receiver_->take(message, bytes);
  }
  void listen(myelin_bench_call call, void *context) override { receiver_->listen(call, context); }
  void unlisten() override
  {
    if (receiver_)
      receiver_->unlisten();
  }

private:
  bool is_answered()
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    return answered_.size() >= plan_.others;
  }

  Plan plan_;
  std::unique_ptr<Node> node_;
  std::mutex mutex_;
  std::set<std::uint32_t> answered_;
  Reader answers_;
  Writer writer_;
  Message message_;
  std::unique_ptr<Subscription> receiver_;
};

struct CyberRt {
  static constexpr const char *middleware = "CyberRT";

  static std::unique_ptr<myelin_bench::Link> open(const myelin_bench_prepare &prepare)
  {
    const NormalPriority normal_priority;
    auto link = std::make_unique<Link>(prepare);
    if (!link->is_in_one_process())
      link->match(prepare);
    return link;
  }
};

} // namespace

extern "C" const myelin_bench_link myelin_cyberrt_link = myelin_bench::Table<CyberRt>::link;
