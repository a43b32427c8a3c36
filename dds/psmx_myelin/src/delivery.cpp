#include "delivery.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "reader.hpp"
#include "support.hpp"

namespace psmx_myelin {
namespace {

/// Key of the guard that ends the thread's waits.
constexpr uint64_t guard_key = 0;
/// Most readers that one wait reports. The next wait reports the others.
constexpr size_t keys_max = 64;
/// Interval between two attempts to find a writer in DDS whose samples are here already: the first one, and the
/// longest.
constexpr uint64_t retry_first_ns = 200'000;
constexpr uint64_t retry_last_ns = 5'000'000;
/// About the cost of a sleep and a wake-up. A thread that polls this long before it sleeps pays at most twice the
/// optimum.
constexpr uint64_t look_ns = 50'000;
/// After a poll without success, the next waits sleep at once: at most so many. After so many successful polls in a
/// row, the number of these waits starts at one again.
constexpr uint32_t sleeps_max = 1 << 13;
constexpr uint32_t hits_min = 256;
/// Longest wait of DDS's thread for this thread, which may be in a listener, or waiting for room in a full reader. DDS
/// lets a deleted writer linger for the same time.
constexpr std::chrono::seconds departure_limit{1};

/// The key is the reader's address, so that no lookup is necessary.
uint64_t key_of(const Reader &reader) { return reinterpret_cast<uint64_t>(&reader); }

}  // namespace

Delivery::Delivery(myelin_node *node, myelin_wait wait) : gives_way_(wait == MYELIN_WAIT_ADAPTIVE) {
  if (myelin_wait_set_open(node, &set_) != MYELIN_OK ||
      myelin_wait_set_guard_condition(set_, guard_key, &guard_) != MYELIN_OK ||
      myelin_wait_set_set_wait(set_, gives_way_ ? MYELIN_WAIT_BLOCK : wait) != MYELIN_OK) {
    const std::runtime_error error(myelin_error_message());
    if (guard_ != nullptr) myelin_guard_condition_close(guard_);
    if (set_ != nullptr) myelin_wait_set_close(set_);
    throw error;
  }
  thread_ = start_thread([this] { run(); });
}

Delivery::~Delivery() {
  forget_departures(*this);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  myelin_guard_condition_trigger(guard_);
  thread_.join();
  added_.clear();
  myelin_guard_condition_close(guard_);
  myelin_wait_set_close(set_);
}

void Delivery::add(std::unique_ptr<Reader> reader) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    added_.push_back(std::move(reader));
  }
  myelin_guard_condition_trigger(guard_);
}

void Delivery::remove(Reader &reader) {
  reader.end();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    removed_.push_back(&reader);
  }
  myelin_guard_condition_trigger(guard_);
}

void Delivery::depart(const std::shared_ptr<Departure> &departure) {
  std::unique_lock<std::mutex> lock(mutex_);
  departure->is_stored = false;
  departures_.push_back(departure);
  myelin_guard_condition_trigger(guard_);
  // A listener that this thread calls may delete entities. This thread must not wait for itself.
  if (std::this_thread::get_id() == thread_.get_id()) return;
  has_stored_.wait_for(lock, departure_limit, [&] { return departure->is_stored; });
}

bool Delivery::follow() {
  std::vector<std::unique_ptr<Reader>> added;
  std::vector<Reader *> removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_ending_) return false;
    added.swap(added_);
    removed.swap(removed_);
    departing_.insert(departing_.end(), departures_.begin(), departures_.end());
    departures_.clear();
  }
  for (auto &reader : added) {
    const uint64_t key = key_of(*reader);
    if (myelin_wait_set_add(set_, reader->subscriber(), key) != MYELIN_OK) {
      PSMX_ERROR("topic %s: a reader gets no samples: %s", reader->topic().c_str(), myelin_error_message());
    }
    readers_.emplace(key, std::move(reader));
  }
  for (const Reader *reader : removed) {
    myelin_wait_set_remove(set_, key_of(*reader));
    readers_.erase(key_of(*reader));
  }
  return true;
}

void Delivery::see_off() {
  const auto stay = [this](const std::shared_ptr<Departure> &departure) {
    bool is_stored = true;
    for (auto &each : readers_) {
      is_stored &= each.second->depart(departure);
      is_waiting_ |= each.second->is_waiting();
    }
    return !is_stored;
  };
  const auto stored = std::stable_partition(departing_.begin(), departing_.end(), stay);
  if (stored == departing_.end()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto each = stored; each != departing_.end(); ++each) (*each)->is_stored = true;
  departing_.erase(stored, departing_.end());
  has_stored_.notify_all();
}

uint64_t Delivery::retry() {
  if (!is_waiting_) return MYELIN_FOREVER;
  is_waiting_ = false;
  for (auto &each : readers_) is_waiting_ |= each.second->is_waiting() && each.second->retry();
  retry_ns_ = retry_ns_ == 0 ? retry_first_ns : std::min(2 * retry_ns_, retry_last_ns);
  if (!is_waiting_) retry_ns_ = 0;
  return is_waiting_ ? retry_ns_ : MYELIN_FOREVER;
}

myelin_code Delivery::wait(uint64_t limit_ns, uint64_t *keys, size_t &count) {
  const bool looks = gives_way_ && sleeps_left_ == 0;
  if (gives_way_ && !looks) --sleeps_left_;
  const uint64_t begun_ns = looks ? myelin_now() : 0;
  myelin_code code = MYELIN_NOTHING;
  uint64_t looked_ns = 0;
  while (looks && code == MYELIN_NOTHING && looked_ns < look_ns) {
    code = myelin_wait_set_wait(set_, 0, keys, keys_max, &count);
    // A thread of the program that has just been woken may need this CPU.
    if (code == MYELIN_NOTHING) sched_yield();
    looked_ns = myelin_now() - begun_ns;
  }
  if (looked_ns >= look_ns) {
    // Samples are rare, or the kernel has given this CPU to other threads for some ms.
    hits_ = 0;
    sleeps_left_ = sleeps_;
    sleeps_ = std::min(4 * sleeps_, sleeps_max);
  } else if (looks && ++hits_ >= hits_min) {
    sleeps_ = 1;
  }
  return code == MYELIN_NOTHING ? myelin_wait_set_wait(set_, limit_ns, keys, keys_max, &count) : code;
}

void Delivery::run() {
  uint64_t keys[keys_max];
  bool is_asked = true;
  // Readers are removed only between waits, so the reader of a reported key still exists.
  while (!is_asked || follow()) {
    is_asked = false;
    see_off();
    size_t count = 0;
    if (wait(retry(), keys, count) < 0) {
      PSMX_ERROR("samples are not delivered any more: %s", myelin_error_message());
      return;
    }
    for (size_t at = 0; at < count; ++at) {
      if (keys[at] == guard_key) {
        is_asked = true;
        continue;
      }
      Reader &reader = *reinterpret_cast<Reader *>(keys[at]);
      reader.deliver();
      is_waiting_ |= reader.is_waiting();
    }
  }
  readers_.clear();
}

}  // namespace psmx_myelin
