// Sixteen threads of a C++ program use the library at random: publish, take, wait, call, throw, move, remove, change,
// close, fork. Nothing hangs or is left, and each subscriber has received or lost every sample published to it. The
// variables of the environment are those of torture.c.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "myelin.hpp"

using namespace std::chrono_literals;
using Bytes = myelin::Bytes;

static constexpr std::size_t threads = 16, each_max = 3, round_length = 200, slack = 8;
static std::uint64_t seed;

#define EXPECT(condition)                                                                            \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      std::fprintf(stderr, "%s:%d: %s (%s), MYELIN_TORTURE_SEED=%llu\n", __FILE__, __LINE__, #condition, \
                   myelin_error_message(), static_cast<unsigned long long>(seed));                   \
      std::abort();                                                                                  \
    }                                                                                                \
  } while (0)

using Published = std::map<std::uint64_t, std::uint64_t>;

/// The samples received by a subscriber: by publisher, the next sequence.
struct Ledger {
  /// Samples between two received ones of a publisher are lost, and reported as lost.
  void enter(const myelin::Sample<Bytes> &sample) {
    const auto byte = static_cast<unsigned char>(sample.size());
    EXPECT(std::all_of(sample.begin(), sample.end(), [&](unsigned char each) { return each == byte; }));
    const std::lock_guard guard(lock);
    const auto [known, is_new] = next.try_emplace(sample.publisher());
    EXPECT(is_new || known->second + sample.lost_before() == sample.sequence());
    known->second = sample.sequence() + 1;
    ++received;
  }
  bool is_complete(const Published &published) {
    const std::lock_guard guard(lock);
    return std::all_of(next.begin(), next.end(), [&](const auto &known) {
      const auto found = published.find(known.first);
      return found == published.end() || found->second == known.second;
    });
  }
  std::mutex lock;
  Published next;
  std::uint64_t received = 0;
};

/// std::barrier is C++20's.
class Barrier {
public:
  void wait() {
    std::unique_lock guard(lock_);
    const auto turn = turn_;
    if (++waiting_ == threads) {
      waiting_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(guard, [&] { return turn != turn_; });
  }

private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0, turn_ = 0;
};

struct SharedSet {
  myelin::WaitSet set;
  std::mutex waiting{};
};

struct World {
  myelin::Node node = myelin::Node::open("torture").value();
  Barrier barrier;
  std::mutex lock;
  Published published;
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> stops{false};
  std::array<std::atomic<const char *>, threads> doing{};
  /// One thread waits in each while others change and close it.
  std::array<std::shared_ptr<SharedSet>, 4> sets;
};

class Actor {
public:
  Actor(World &world, std::size_t number)
      : world_(world), number_(number), random_(static_cast<std::uint32_t>(seed * 31 + number)) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void publish() {
    const auto count = some_bytes();
    if (publishers_.empty()) return;
    auto &publisher = publishers_[below(publishers_.size())];
    EXPECT(publisher.publish_copy(std::vector<unsigned char>(count, static_cast<unsigned char>(count))));
  }

  void publish_loan() {
    const auto count = some_bytes();
    if (publishers_.empty()) return;
    auto loan = publishers_[below(publishers_.size())].loan(count).value();
    std::fill(loan.begin(), loan.end(), static_cast<unsigned char>(count));
    auto moved = std::move(loan);
    if (below(8) > 0) EXPECT(std::move(moved).publish());
  }

  void take() {
    if (subscribers_.empty()) return;
    auto &[subscriber, ledger] = subscribers_[below(subscribers_.size())];
    for (auto count = below(32); count > 0; --count) {
      auto taken = count % 8 == 0 ? subscriber.receive(std::chrono::nanoseconds(below(200'000))) : subscriber.take();
      if (!taken && taken.error().code() == MYELIN_ERROR_TOO_MANY) return held_.clear();
      if (!taken.value()) return;
      ledger->enter(*taken.value());
      if (below(4) == 0) held_.push_back(taken.value()->clone().value());
    }
  }

  void release() {
    if (!held_.empty()) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(below(held_.size())));
  }

  void wait_set() {
    auto made = world_.node.wait_set();
    if (!made) return;  // others have them all
    auto set = std::move(made.value());
    for (auto &[subscriber, ledger] : subscribers_) EXPECT(set.add(subscriber, 1));
    auto guard = set.guard_condition(2).value();
    if (below(2) == 0) guard.trigger();
    EXPECT(set.wait(std::chrono::nanoseconds(below(500'000))));
  }

  /// Another thread may have closed it.
  static void expect_ok_or_closed(const myelin::Result<void> &result) {
    if (result) return;
    EXPECT(result.error().code() == MYELIN_ERROR_CLOSED || result.error().code() == MYELIN_ERROR_HANDLE);
  }

  std::shared_ptr<SharedSet> some_set(bool takes_away = false) {
    const auto at = below(4);
    const std::lock_guard guard(world_.lock);
    auto &place = world_.sets[at];
    if (!place) place.reset(new SharedSet{world_.node.wait_set().value()});
    return takes_away ? std::move(place) : place;
  }

  void wait_in_a_shared_set() {
    const auto shared = some_set();
    const std::unique_lock turn(shared->waiting, std::try_to_lock);
    if (!turn) return;
    const auto ready = shared->set.wait(std::chrono::nanoseconds(below(2'000'000)));
    if (!ready) expect_ok_or_closed(ready.error());
  }

  void change_set() {
    const auto what = below(6);
    const auto shared = some_set(what == 0);
    auto &set = shared->set;
    const auto key = below(1'000);
    if (what == 0) {
      EXPECT(set.close());
    } else if (what == 1) {
      expect_ok_or_closed(set.timer(50us, key));
    } else if (what == 2) {
      auto guard = set.guard_condition(key);
      if (!guard) return expect_ok_or_closed(guard.error());
      if (!publishers_.empty()) EXPECT(publishers_.front().on_event(guard.value()));
      guard.value().trigger();
    } else {
      auto added = subscriber();
      expect_ok_or_closed(set.add(added, key));
      if (what == 3) (void)set.remove(key);
      if (what > 3) return;
      // A function that throws; its subscriber is in a set, and leaves that.
      auto call = [](const myelin::Sample<Bytes> &) { throw std::runtime_error("as it likes"); };
      auto callback = std::move(added).on_sample(call).value();
      publish();
      callback.thrown();
    }
  }

  /// The values of results throw.
  void throw_errors() {
    try {
      myelin::Subscriber<Bytes> closed(nullptr);
      closed.take().value();
      EXPECT(!"taken from nothing");
    } catch (const myelin::Error &error) {
      EXPECT(error.code() == MYELIN_ERROR_HANDLE);
    }
    try {
      if (publishers_.empty()) return;
      auto loan = publishers_[below(publishers_.size())].loan(some_bytes()).value();
      throw std::runtime_error("with a loan");
    } catch (const std::runtime_error &) {
    }
  }

  void add_publisher() {
    if (publishers_.size() < each_max) publishers_.push_back(topic().publisher().value());
  }

  void add_subscriber() {
    if (subscribers_.size() < each_max) subscribers_.emplace_back(subscriber(), std::make_unique<Ledger>());
  }

  void add_callback() {
    if (callbacks_.size() >= each_max) return;
    auto ledger = std::make_shared<Ledger>();
    auto kept = std::make_shared<std::optional<myelin::Sample<Bytes>>>();
    const bool throws = below(3) == 0;
    auto call = [ledger, kept, throws](const myelin::Sample<Bytes> &sample) {
      ledger->enter(sample);
      if (ledger->received % 5 == 2) kept->emplace(sample.clone().value());
      if (throws && ledger->received % 7 == 3) throw std::runtime_error("as it likes");
    };
    callbacks_.emplace_back(subscriber().on_sample(call).value(), ledger);
  }

  void serve() {
    const auto name = "service" + std::to_string(number_);
    if (!server_) server_.emplace(world_.node.server<Bytes, Bytes>(name.c_str()).value());
    while (auto request = std::move(server_->receive(0ns).value())) {
      if (below(8) > 0) EXPECT(request->reply(std::vector<unsigned char>(request->begin(), request->end())));
    }
  }

  void call() {
    const auto name = "service" + std::to_string(below(threads));
    if (!client_) client_.emplace(world_.node.client<Bytes, Bytes>(name.c_str()).value());
    const std::vector<unsigned char> asked(1 + below(300), 7);
    auto reply = client_->call(asked, std::chrono::nanoseconds(below(2'000'000)));
    if (reply) EXPECT(std::equal(reply.value().begin(), reply.value().end(), asked.begin(), asked.end()));
  }

  void remove() {
    switch (below(3)) {
      case 0: if (!publishers_.empty()) publishers_.pop_back(); break;
      case 1: if (!subscribers_.empty()) subscribers_.pop_back(); break;
      default: if (!callbacks_.empty()) callbacks_.pop_back();
    }
  }

  void close_all() {
    held_.clear();
    client_.reset();
    server_.reset();
    callbacks_.clear();
    subscribers_.clear();
    publishers_.clear();
  }

  void fork_child() {
    const pid_t child = fork();
    if (child == 0) {
      bool is_forked = true;
      alarm(60);
      for (auto &publisher : publishers_) {
        auto published = publisher.publish_copy(std::vector<unsigned char>(3));
        is_forked &= !published && published.error().code() == MYELIN_ERROR_FORKED;
      }
      close_all();
      _exit(is_forked ? 0 : 1);
    }
    int status = -1;
    while (waitpid(child, &status, 0) != child) continue;
    EXPECT(status == 0);
  }

  struct Operation {
    const char *name;
    std::size_t likely;
    void (Actor::*act)();
  };
  /// Each is for itself, and does nothing where it has nothing to do it with: add one here, and that is all.
  static std::vector<Operation> operations() {
    return {
        {"publish", 60, &Actor::publish},
        {"publish_loan", 30, &Actor::publish_loan},
        {"take", 60, &Actor::take},
        {"release", 8, &Actor::release},
        {"wait_set", 8, &Actor::wait_set},
        {"shared_set", 12, &Actor::wait_in_a_shared_set},
        {"change_set", 12, &Actor::change_set},
        {"throw_errors", 4, &Actor::throw_errors},
        {"add_publisher", 8, &Actor::add_publisher},
        {"add_subscriber", 8, &Actor::add_subscriber},
        {"add_callback", 4, &Actor::add_callback},
        {"serve", 10, &Actor::serve},
        {"call", 4, &Actor::call},
        {"remove", 6, &Actor::remove},
        {"close_all", 1, &Actor::close_all},
        {"fork", 1, &Actor::fork_child},
    };
  }

  /// Some operations, then the books.
  void round(const std::vector<Operation> &operations) {
    std::size_t likely = 0;
    for (const auto &each : operations) likely += each.likely;
    for (std::size_t count = 0; count < round_length; ++count) {
      auto choice = below(likely);
      auto chosen = operations.begin();
      while (choice >= chosen->likely) choice -= (chosen++)->likely;
      world_.doing[number_] = chosen->name;
      (this->*chosen->act)();
      ++world_.done;
    }
    world_.doing[number_] = "at the end of a round";
    world_.barrier.wait();
    // All threads stand still. No subscriber has lost the last sample of a publisher.
    for (auto &publisher : publishers_) {
      const auto published = publisher.publish_copy(std::vector<unsigned char>(1, 1)).value();
      const std::lock_guard guard(world_.lock);
      world_.published[publisher.endpoint()] = published.sequence + 1;
    }
    world_.barrier.wait();
    held_.clear();
    for (auto &[subscriber, ledger] : subscribers_) {
      while (auto sample = std::move(subscriber.take().value())) ledger->enter(*sample);
      EXPECT(ledger->is_complete(world_.published));
    }
    for (auto &[callback, ledger] : callbacks_) {
      EXPECT(callback.error());
      // A thread of its own calls while another thread calls functions of the topic.
      const auto begun = std::chrono::steady_clock::now();
      while (!ledger->is_complete(world_.published)) {
        EXPECT(std::chrono::steady_clock::now() - begun < 60s);
        std::this_thread::sleep_for(1ms);
      }
    }
    world_.barrier.wait();
    close_all();
    if (number_ == 0) world_.sets = {};
    world_.barrier.wait();
  }

private:
  std::size_t some_bytes() {
    constexpr std::size_t bytes[] = {1, 8, 100, 105, 4'000, 40'000};
    return bytes[below(6)];
  }
  myelin::Topic<Bytes> topic() {
    auto topic = world_.node.topic<Bytes>("topic" + std::to_string(below(4)));
    return topic.depth(16);
  }
  myelin::Subscriber<Bytes> subscriber() {
    myelin::SubscriberOptions options;
    options.publishers_max = 256;
    options.held_max = 64;
    return topic().subscriber(options).value();
  }

  World &world_;
  std::size_t number_;
  std::minstd_rand random_;
  std::vector<myelin::Publisher<Bytes>> publishers_;
  std::vector<std::pair<myelin::Subscriber<Bytes>, std::unique_ptr<Ledger>>> subscribers_;
  std::vector<std::pair<myelin::Callback, std::shared_ptr<Ledger>>> callbacks_;
  std::vector<myelin::Sample<Bytes>> held_;
  std::optional<myelin::Server<Bytes, Bytes>> server_;
  std::optional<myelin::Client<Bytes, Bytes>> client_;
};

static std::size_t entries(const char *folder) {
  DIR *opened = opendir(folder);
  std::size_t count = 0;
  while (readdir(opened) != nullptr) ++count;
  closedir(opened);
  return count;
}

/// How many descriptors and threads the process has.
struct Open {
  std::size_t descriptors, threads;

  static Open now() { return {entries("/proc/self/fd"), entries("/proc/self/task")}; }
};

/// The node's thread closes its ends of connections after the program has closed an endpoint; a leak stays.
static void expect_no_more_than(const Open &first) {
  const auto begun = std::chrono::steady_clock::now();
  for (Open now = Open::now(); now.descriptors > first.descriptors + slack || now.threads > first.threads + slack;
       now = Open::now()) {
    if (std::chrono::steady_clock::now() - begun > 60s) {
      std::fprintf(stderr, "at first %zu descriptors and %zu threads, now %zu and %zu\n", first.descriptors,
                   first.threads, now.descriptors, now.threads);
      EXPECT(!"descriptors or threads leak");
    }
    std::this_thread::sleep_for(1ms);
  }
}

static void act(World &world, std::size_t number, const std::vector<Actor::Operation> &operations) {
  Actor actor(world, number);
  const char *seconds = std::getenv("MYELIN_TORTURE_S");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 1);
  std::optional<Open> first;
  for (bool is_first = true; !world.stops; is_first = false) {
    actor.round(operations);
    if (number == 0) {
      if (!first) first = Open::now();
      expect_no_more_than(*first);
      world.published.clear();
      world.stops = !is_first && std::chrono::steady_clock::now() > until;
    }
    world.barrier.wait();  // all read what this one has decided
  }
}

static void watch(const std::shared_ptr<const World> &kept) {
  const World &world = *kept;
  std::uint64_t seen = 0;
  for (auto since = std::chrono::steady_clock::now();; std::this_thread::sleep_for(500ms)) {
    const auto now = std::chrono::steady_clock::now();
    if (world.done != seen) {
      seen = world.done;
      since = now;
    } else if (now - since > 60s) {
      for (const auto &doing : world.doing) std::fprintf(stderr, "%s\n", doing.load());
      EXPECT(!"all stand still");
    }
  }
}

int main() {
  const char *given = std::getenv("MYELIN_TORTURE_SEED"), *without = std::getenv("MYELIN_TORTURE_WITHOUT");
  seed = given ? std::strtoull(given, nullptr, 10) : static_cast<std::uint64_t>(getpid());
  std::fprintf(stderr, "torture, MYELIN_TORTURE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  auto operations = Actor::operations();
  for (auto &each : operations) {
    if (without && std::strstr(without, each.name)) each.likely = 0;
  }
  const auto kept = std::make_shared<World>();
  World &world = *kept;
  std::thread(watch, kept).detach();
  std::vector<std::thread> all;
  for (std::size_t number = 0; number < threads; ++number) {
    all.emplace_back(act, std::ref(world), number, std::cref(operations));
  }
  for (auto &thread : all) thread.join();
  std::puts("all threads");
  return 0;
}
