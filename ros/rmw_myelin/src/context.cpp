// Contexts and their options: rmw_init and related functions.
#include "context.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "discovery.hpp"
#include "rcutils/strdup.h"
#include "rmw/init.h"
#include "rmw/init_options.h"

namespace rmw_myelin {
namespace {

/// Raises the process's soft limit of open files. A ROS 2 node has some 20 endpoints before the first one of the
/// program, and each has two or three open files, so 20 nodes in one process reach the usual limit of 1,024. The
/// library itself does not change this limit.
void raise_open_files() {
  constexpr rlim_t enough = 1 << 16;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= enough) return;
  limit.rlim_cur = std::min(limit.rlim_max, enough);
  setrlimit(RLIMIT_NOFILE, &limit);  // if this fails, the error of an endpoint names the limit
}

}  // namespace

WaitSet *WaitSets::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Place *found = nullptr;
  for (Place &place : places_) {
    if (place.is_in_use) continue;
    found = &place;
    if (place.thread == std::this_thread::get_id()) break;
  }
  if (found == nullptr) {
    places_.push_back({std::make_unique<WaitSet>(node_, strategy_, is_shut_down_), {}, false});
    found = &places_.back();
  }
  found->is_in_use = true;
  found->thread = std::this_thread::get_id();
  return found->set.get();
}

void WaitSets::give_back(WaitSet *set) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Place &place : places_) {
    if (place.set.get() == set) place.is_in_use = false;
  }
}

void WaitSets::wake_all() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Place &place : places_) place.set->wake();
}

}  // namespace rmw_myelin

rmw_context_impl_s::rmw_context_impl_s(const rmw_init_options_t &options) {
  bool over_network = false;
  node = rmw_myelin::open_node(options, over_network);
  if (options.enclave != nullptr) enclave = options.enclave;
  wait_sets = std::make_unique<rmw_myelin::WaitSets>(node, is_shut_down);
  listener = std::make_unique<rmw_myelin::Listener>(node);
  graph = std::make_unique<rmw_myelin::Graph>(*this, over_network);
}

uint64_t rmw_context_impl_s::poll_events() {
  uint64_t next_ns = MYELIN_FOREVER;
  std::unique_lock<std::mutex> lock(sources_mutex_);
  poller_ = std::this_thread::get_id();
  for (auto at = sources_.begin(); at != sources_.end(); at = sources_.upper_bound(polled_)) {
    polled_ = *at;
    lock.unlock();
    try {
      next_ns = std::min(next_ns, polled_->poll_events());
      polled_->events().deliver();
    } catch (const std::exception &error) {
      RCUTILS_LOG_ERROR_NAMED(rmw_myelin::identifier, "an event may be late: %s", error.what());
    }
    lock.lock();
    is_polled_.notify_all();
  }
  polled_ = nullptr;
  if (next_ns == MYELIN_FOREVER) return MYELIN_FOREVER;
  const uint64_t now_ns = myelin_now();
  return next_ns > now_ns ? next_ns - now_ns : 0;
}

void rmw_context_impl_s::add(rmw_myelin::EventSource &source) {
  const std::lock_guard<std::mutex> lock(sources_mutex_);
  sources_.insert(&source);
}

void rmw_context_impl_s::remove(rmw_myelin::EventSource &source) {
  std::unique_lock<std::mutex> lock(sources_mutex_);
  sources_.erase(&source);
  if (poller_ == std::this_thread::get_id()) return;  // called from a callback
  is_polled_.wait(lock, [&] { return polled_ != &source; });
}

rmw_context_impl_s::~rmw_context_impl_s() {
  graph.reset();
  listener.reset();
  wait_sets.reset();
  // Close the endpoints that the client library has not destroyed (rclpy: the service of type descriptions of each
  // node). They would keep the library's node open.
  for (rmw_myelin::EventSource *source : sources_) source->close();
  myelin_node_close(node);
}

/// Checks that the argument was initialised, and by this implementation.
#define CHECK_INITIALIZED(argument, member, noun)                                     \
  if ((argument)->member == nullptr) {                                                \
    RMW_SET_ERROR_MSG("expected initialized " noun);                                  \
    return RMW_RET_INVALID_ARGUMENT;                                                  \
  }                                                                                   \
  CHECK_HANDLE(argument)

extern "C" {

RMW_PUBLIC rmw_ret_t rmw_init_options_init(rmw_init_options_t *init_options,
                                           rcutils_allocator_t allocator) {
  CHECK_ARGUMENT(init_options);
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  if (init_options->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("expected zero-initialized init_options");
    return RMW_RET_INVALID_ARGUMENT;
  }
  init_options->instance_id = 0;
  init_options->implementation_identifier = rmw_myelin::identifier;
  init_options->allocator = allocator;
  init_options->impl = nullptr;
  init_options->enclave = nullptr;
  init_options->domain_id = RMW_DEFAULT_DOMAIN_ID;
  init_options->security_options = rmw_get_default_security_options();
#if __has_include("rmw/discovery_options.h")
  init_options->discovery_options = rmw_get_zero_initialized_discovery_options();
  return rmw_discovery_options_init(&init_options->discovery_options, 0, &allocator);
#else
  init_options->localhost_only = RMW_LOCALHOST_ONLY_DEFAULT;
  return RMW_RET_OK;
#endif
}

RMW_PUBLIC rmw_ret_t rmw_init_options_copy(const rmw_init_options_t *src, rmw_init_options_t *dst) {
  CHECK_ARGUMENT(src);
  CHECK_ARGUMENT(dst);
  CHECK_INITIALIZED(src, implementation_identifier, "src");
  if (dst->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("expected zero-initialized dst");
    return RMW_RET_INVALID_ARGUMENT;
  }
  const rcutils_allocator_t &allocator = src->allocator;
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  rmw_init_options_t copy = *src;
  copy.enclave = nullptr;
  copy.security_options = rmw_get_zero_initialized_security_options();
  if (src->enclave != nullptr && (copy.enclave = rcutils_strdup(src->enclave, allocator)) == nullptr) {
    RMW_SET_ERROR_MSG("failed to copy the enclave");
    return RMW_RET_BAD_ALLOC;
  }
  rmw_ret_t result = rmw_security_options_copy(&src->security_options, &allocator, &copy.security_options);
#if __has_include("rmw/discovery_options.h")
  if (result == RMW_RET_OK) {
    copy.discovery_options = rmw_get_zero_initialized_discovery_options();
    rcutils_allocator_t own = allocator;
    result = rmw_discovery_options_copy(&src->discovery_options, &own, &copy.discovery_options);
  }
#endif
  if (result != RMW_RET_OK) {
    allocator.deallocate(copy.enclave, allocator.state);
    const rmw_ret_t ended = rmw_security_options_fini(&copy.security_options, &allocator);
    return ended == RMW_RET_OK ? result : ended;
  }
  *dst = copy;
  return RMW_RET_OK;
}

RMW_PUBLIC rmw_ret_t rmw_init_options_fini(rmw_init_options_t *init_options) {
  CHECK_ARGUMENT(init_options);
  CHECK_INITIALIZED(init_options, implementation_identifier, "init_options");
  const rcutils_allocator_t allocator = init_options->allocator;
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  allocator.deallocate(init_options->enclave, allocator.state);
  rmw_ret_t result = rmw_security_options_fini(&init_options->security_options, &allocator);
#if __has_include("rmw/discovery_options.h")
  const rmw_ret_t ended = rmw_discovery_options_fini(&init_options->discovery_options);
  if (result == RMW_RET_OK) result = ended;
#endif
  *init_options = rmw_get_zero_initialized_init_options();
  return result;
}

RMW_PUBLIC rmw_ret_t rmw_init(const rmw_init_options_t *options, rmw_context_t *context) try {
  CHECK_ARGUMENT(options);
  CHECK_ARGUMENT(context);
  CHECK_INITIALIZED(options, implementation_identifier, "init options");
  if (options->enclave == nullptr) {
    RMW_SET_ERROR_MSG("expected non-null enclave");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (context->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("expected a zero-initialized context");
    return RMW_RET_INVALID_ARGUMENT;
  }
  rmw_myelin::raise_open_files();
  rmw_context_t made = rmw_get_zero_initialized_context();
  made.instance_id = options->instance_id;
  made.implementation_identifier = rmw_myelin::identifier;
  made.actual_domain_id = rmw_myelin::domain_of(*options);
  rmw_ret_t result = rmw_init_options_copy(options, &made.options);
  if (result != RMW_RET_OK) return result;
  try {
    made.impl = new rmw_context_impl_s(*options);
  } catch (const std::exception &error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("cannot open a context: %s", error.what());
    result = rmw_init_options_fini(&made.options);
    return result == RMW_RET_OK ? RMW_RET_ERROR : result;
  }
  *context = made;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_shutdown(rmw_context_t *context) try {
  CHECK_ARGUMENT(context);
  CHECK_INITIALIZED(context, impl, "context");
  // Under the lock: another thread may finalize the context as soon as it sees the flag.
  const std::lock_guard<std::mutex> lock(context->impl->mutex);
  context->impl->is_shut_down = true;
  context->impl->wait_sets->wake_all();
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_context_fini(rmw_context_t *context) try {
  CHECK_ARGUMENT(context);
  CHECK_INITIALIZED(context, impl, "context");
  {
    const std::lock_guard<std::mutex> lock(context->impl->mutex);
    if (!context->impl->is_shut_down) {
      RMW_SET_ERROR_MSG("context has not been shutdown");
      return RMW_RET_INVALID_ARGUMENT;
    }
    if (context->impl->nodes > 0) {
      RMW_SET_ERROR_MSG("Finalizing a context with active nodes");
      return RMW_RET_ERROR;
    }
  }
  const rmw_ret_t result = rmw_init_options_fini(&context->options);
  delete context->impl;
  *context = rmw_get_zero_initialized_context();
  return result;
} CONTAIN

}  // extern "C"
