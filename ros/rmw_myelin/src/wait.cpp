#include "wait.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "client.hpp"
#include "context.hpp"
#include "event.hpp"
#include "reader.hpp"
#include "service.hpp"
#include "subscription.hpp"

namespace rmw_myelin {

Trigger::~Trigger() {
  for (;;) {
    WaitSet *set;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiters_.empty()) return;
      set = waiters_.back();
    }
    const WaitSet::Interruption interruption(*set);
    set->forget(*this);
    const std::lock_guard<std::mutex> own(mutex_);
    waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), set), waiters_.end());
  }
}

void Trigger::fire() {
  // Under the lock: a thread that sees it pending may destroy it.
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_.store(true, std::memory_order_release);
  for (WaitSet *set : waiters_) set->wake();
}

int32_t wait_strategy() {
  const char *value = std::getenv("MYELIN_WAIT");
  if (value == nullptr || *value == 0) return MYELIN_WAIT_ADAPTIVE;
  const std::pair<const char *, int32_t> all[] = {{"adaptive", MYELIN_WAIT_ADAPTIVE},
                                                  {"block", MYELIN_WAIT_BLOCK},
                                                  {"poll", MYELIN_WAIT_POLL},
                                                  {"predictive", MYELIN_WAIT_PREDICTIVE}};
  for (const auto &[name, strategy] : all) {
    if (std::strcmp(value, name) == 0) return strategy;
  }
  RCUTILS_LOG_ERROR_ONCE_NAMED(
      identifier, "MYELIN_WAIT is %s; set it to adaptive, block, poll or predictive", value);
  return MYELIN_WAIT_ADAPTIVE;
}

WaitSet::WaitSet(myelin_node *node, int32_t strategy, const std::atomic<bool> &is_shut_down)
    : is_shut_down_(is_shut_down) {
  if (myelin_wait_set_open(node, &set_) != MYELIN_OK) throw std::runtime_error(myelin_error_message());
  myelin_wait_set_set_wait(set_, strategy);
  if (myelin_wait_set_guard_condition(set_, 0, &guard_) != MYELIN_OK) {
    const std::string why = myelin_error_message();
    myelin_wait_set_close(set_);
    throw std::runtime_error(why);
  }
}

WaitSet::~WaitSet() {
  for (const auto &each : attached_) each.second->set_ = nullptr;
  requested_triggers_.clear();
  attach_triggers();
  myelin_guard_condition_close(guard_);
  myelin_wait_set_close(set_);
}

/// Sets entries that are not ready to NULL. Returns whether any is ready.
template <typename IsReady>
static bool keep_ready(void **array, size_t count, IsReady is_ready) {
  bool any = false;
  for (size_t at = 0; at < count; ++at) {
    if (array[at] == nullptr) continue;
    if (is_ready()) any = true;
    else array[at] = nullptr;
  }
  return any;
}

rmw_ret_t WaitSet::wait(rmw_subscriptions_t *subscriptions, rmw_guard_conditions_t *guard_conditions,
                        rmw_services_t *services, rmw_clients_t *clients, rmw_events_t *events,
                        const rmw_time_t *timeout) {
  if (is_waiting_.exchange(true)) {
    RMW_SET_ERROR_MSG("another thread is waiting with this wait set");
    return RMW_RET_ERROR;
  }
  struct Waiting {
    std::atomic<bool> &is_waiting;
    ~Waiting() { is_waiting = false; }
  };
  std::unique_lock<std::mutex> lock(mutex_);
  const Waiting waiting{is_waiting_};
  ++round_;
  asked_.clear();
  requested_triggers_.clear();
  const auto each = [](auto *array, size_t count, auto use) {
    for (size_t at = 0; at < count; ++at) {
      if (array[at] != nullptr) use(array[at]);
    }
  };
  if (subscriptions != nullptr) {
    each(subscriptions->subscribers, subscriptions->subscriber_count,
         [this](void *it) { asked_.push_back(&static_cast<Subscription *>(it)->reader); });
  }
  if (services != nullptr) {
    each(services->services, services->service_count,
         [this](void *it) { asked_.push_back(&static_cast<Service *>(it)->reader); });
  }
  if (clients != nullptr) {
    each(clients->clients, clients->client_count,
         [this](void *it) { asked_.push_back(&static_cast<Client *>(it)->reader); });
  }
  if (guard_conditions != nullptr) {
    each(guard_conditions->guard_conditions, guard_conditions->guard_condition_count,
         [this](void *it) { requested_triggers_.push_back(static_cast<Trigger *>(it)); });
  }
  if (events != nullptr) {
    each(events->events, events->event_count,
         [this](void *it) { requested_triggers_.push_back(&event_trigger(*static_cast<rmw_event_t *>(it))); });
  }
  size_t own = 0;
  for (Reader *reader : asked_) {
    if (reader->set_.load(std::memory_order_relaxed) != this) {
      if (!attach(*reader, lock)) return RMW_RET_ERROR;
      if (reader->is_listened_to()) continue;
    }
    reader->asked_ = round_;
    ++own;
  }
  if (attached_.size() > own) detach_others();
  if (triggers_ != requested_triggers_) attach_triggers();

  const uint64_t limit_ns = timeout == nullptr ? MYELIN_FOREVER : nanoseconds(*timeout);
  const uint64_t began_ns = limit_ns == MYELIN_FOREVER ? 0 : myelin_now();
  for (uint64_t left_ns = limit_ns;;) {
    // If something is ready already, the wait set only looks for more and does not block.
    const bool is_there = is_pending() || is_shut_down_;
    const myelin_code found = wait_once(is_there ? 0 : left_ns);
    while (wanted_.load(std::memory_order_relaxed) > 0) is_unwanted_.wait(lock);
    if (found < 0) return fail(found, "cannot wait");
    if (found == MYELIN_OK || is_there || is_pending() || is_shut_down_) break;
    if (limit_ns == MYELIN_FOREVER) continue;
    const uint64_t gone_ns = myelin_now() - began_ns;
    if (gone_ns >= limit_ns) break;
    left_ns = limit_ns - gone_ns;
  }

  // By our own lists, which are in the order of the arrays: an object in an array may have been destroyed meanwhile.
  auto reader = asked_.cbegin();
  auto trigger = requested_triggers_.cbegin();
  const auto has_taken = [&] {
    const Reader *const it = *reader++;
    return it != nullptr && it->has_taken();
  };
  const auto was_pending = [&] {
    Trigger *const it = *trigger++;
    return it != nullptr && it->clear();
  };
  const auto is_still_pending = [&] {
    const Trigger *const it = *trigger++;
    return it != nullptr && it->is_pending();
  };
  bool any = false;
  if (subscriptions != nullptr) {
    any |= keep_ready(subscriptions->subscribers, subscriptions->subscriber_count, has_taken);
  }
  if (services != nullptr) any |= keep_ready(services->services, services->service_count, has_taken);
  if (clients != nullptr) any |= keep_ready(clients->clients, clients->client_count, has_taken);
  if (guard_conditions != nullptr) {
    any |= keep_ready(guard_conditions->guard_conditions, guard_conditions->guard_condition_count, was_pending);
  }
  if (events != nullptr) any |= keep_ready(events->events, events->event_count, is_still_pending);
  return any ? RMW_RET_OK : RMW_RET_TIMEOUT;
}

WaitSet::Interruption::Interruption(WaitSet &set) : set_(set), lock_(set.mutex_, std::try_to_lock) {
  if (lock_) return;
  ++set_.wanted_;
  set_.wake();
  lock_.lock();
  --set_.wanted_;
}

WaitSet::Interruption::~Interruption() {
  lock_.unlock();
  set_.is_unwanted_.notify_all();
}

/// Sets the error and returns false if no wait for the reader is possible.
bool WaitSet::attach(Reader &reader, std::unique_lock<std::mutex> &lock) {
  WaitSet *other = nullptr;
  while (!reader.is_listened_to() && !reader.set_.compare_exchange_strong(other, this)) {
    // Without our lock, because the thread of the other wait set may need it.
    lock.unlock();
    const bool is_free = other->release(reader) || reader.share();
    lock.lock();
    if (!is_free) return false;
    other = nullptr;
  }
  // Check again: it may have joined the listener since. ORDER: SeqCst, like the two stores in `Reader::join_listener`.
  if (reader.is_listened_to_.load()) {
    if (reader.set_ == this) reader.set_ = nullptr;
    requested_triggers_.push_back(&reader.arrived());
    return true;
  }
  const myelin_code code = myelin_wait_set_add(set_, reader.subscriber_, last_key_ + 1);
  if (code != MYELIN_OK) {
    reader.set_ = nullptr;
    fail(code, "cannot attach to a wait set");
    return false;
  }
  reader.key_ = ++last_key_;
  attached_.emplace(reader.key_, &reader);
  return true;
}

bool WaitSet::release(Reader &reader) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || is_waiting_) return false;
  if (reader.set_ == this) detach(reader);
  return true;
}

void WaitSet::lend(Reader &reader) {
  const Interruption interruption(*this);
  if (reader.set_ != this) return;
  detach(reader);
  if (!is_waiting_ || std::find(asked_.begin(), asked_.end(), &reader) == asked_.end()) return;
  requested_triggers_.push_back(&reader.arrived());
  attach_triggers();
}

void WaitSet::forget(Reader &reader) {
  const Interruption interruption(*this);
  if (reader.set_ == this) detach(reader);
  std::replace(asked_.begin(), asked_.end(), &reader, static_cast<Reader *>(nullptr));
}

void WaitSet::forget(Trigger &trigger) {
  for (auto *triggers : {&triggers_, &requested_triggers_}) {
    std::replace(triggers->begin(), triggers->end(), &trigger, static_cast<Trigger *>(nullptr));
  }
  // The trigger may belong to a reader that the listener serves and that is being destroyed.
  for (Reader *&reader : asked_) {
    if (reader != nullptr && &reader->arrived() == &trigger) reader = nullptr;
  }
}

void WaitSet::detach(Reader &reader) {
  myelin_wait_set_remove(set_, reader.key_);
  attached_.erase(reader.key_);
  reader.set_ = nullptr;
}

void WaitSet::detach_others() {
  std::vector<Reader *> others;
  for (const auto &each : attached_) {
    if (each.second->asked_ != round_) others.push_back(each.second);
  }
  for (Reader *reader : others) detach(*reader);
}

void WaitSet::attach_triggers() {
  for (Trigger *trigger : triggers_) {
    if (trigger == nullptr) continue;
    const std::lock_guard<std::mutex> lock(trigger->mutex_);
    auto &waiters = trigger->waiters_;
    waiters.erase(std::remove(waiters.begin(), waiters.end(), this), waiters.end());
  }
  for (Trigger *trigger : requested_triggers_) {
    if (trigger == nullptr) continue;
    const std::lock_guard<std::mutex> lock(trigger->mutex_);
    trigger->waiters_.push_back(this);
  }
  triggers_ = requested_triggers_;
}

bool WaitSet::is_pending() const {
  const auto is_pending = [](const Trigger *trigger) { return trigger != nullptr && trigger->is_pending(); };
  const auto has_taken = [](const Reader *reader) { return reader != nullptr && reader->has_taken(); };
  return std::any_of(triggers_.begin(), triggers_.end(), is_pending) ||
         std::any_of(asked_.begin(), asked_.end(), has_taken);
}

/// Returns MYELIN_OK if a reader is ready.
myelin_code WaitSet::wait_once(uint64_t limit_ns) {
  keys_.resize(attached_.size() + 1);
  size_t count = 0;
  const myelin_code code = myelin_wait_set_wait(set_, limit_ns, keys_.data(), keys_.size(), &count);
  if (code != MYELIN_OK) return code;
  bool any = false;
  for (size_t at = 0; at < count; ++at) {
    const auto found = attached_.find(keys_[at]);
    any |= found != attached_.end() && found->second->take_ahead();
  }
  return any ? MYELIN_OK : MYELIN_NOTHING;
}

}  // namespace rmw_myelin

using rmw_myelin::Trigger;

extern "C" {

RMW_PUBLIC rmw_guard_condition_t *rmw_create_guard_condition(rmw_context_t *context) try {
  CHECK_HANDLE_OR_NULL(context);
  auto trigger = std::make_unique<Trigger>();
  auto *const handle = new rmw_guard_condition_t{rmw_myelin::identifier, trigger.get(), context};
  trigger.release();
  return handle;
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_guard_condition(rmw_guard_condition_t *guard_condition) try {
  CHECK_HANDLE(guard_condition);
  delete static_cast<Trigger *>(guard_condition->data);
  delete guard_condition;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_trigger_guard_condition(const rmw_guard_condition_t *guard_condition) try {
  CHECK_HANDLE(guard_condition);
  static_cast<Trigger *>(guard_condition->data)->fire();
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_wait_set_t *rmw_create_wait_set(rmw_context_t *context, size_t) try {
  CHECK_HANDLE_OR_NULL(context);
  RMW_CHECK_FOR_NULL_WITH_MSG(context->impl, "expected initialized context", return nullptr);
  try {
    rmw_myelin::WaitSets &sets = *context->impl->wait_sets;
    auto lent = std::make_unique<rmw_myelin::LentWaitSet>(sets);
    auto *const handle = new rmw_wait_set_t{rmw_myelin::identifier, nullptr, lent.get()};
    lent.release();
    return handle;
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
        "cannot create a wait set: %s; let fewer executors wait at once in this process", error.what());
    return nullptr;
  }
} CONTAIN_OR_NULL

RMW_PUBLIC rmw_ret_t rmw_destroy_wait_set(rmw_wait_set_t *wait_set) try {
  // rcl also destroys a wait set that could not be created. Keep the error that explains why.
  if (wait_set == nullptr && rmw_error_is_set()) return RET_OF_NULL;
  RMW_CHECK_ARGUMENT_FOR_NULL(wait_set, RET_OF_NULL);
  CHECK_HANDLE(wait_set);
  delete static_cast<rmw_myelin::LentWaitSet *>(wait_set->data);
  delete wait_set;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_wait(rmw_subscriptions_t *subscriptions,
                              rmw_guard_conditions_t *guard_conditions, rmw_services_t *services,
                              rmw_clients_t *clients, rmw_events_t *events, rmw_wait_set_t *wait_set,
                              const rmw_time_t *wait_timeout) try {
  CHECK_HANDLE(wait_set);
  auto &lent = *static_cast<rmw_myelin::LentWaitSet *>(wait_set->data);
  return lent.set->wait(subscriptions, guard_conditions, services, clients, events, wait_timeout);
} CONTAIN

}  // extern "C"
