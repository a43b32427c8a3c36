#include "reply_writers.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "context.hpp"

namespace rmw_myelin {
namespace {

/// How long a reply waits for its client to match the reply topic. On a busy machine it may take nearly as long.
constexpr uint64_t match_ns = 2'000'000'000;
/// How often this wait checks whether the client has gone. A match ends it at once.
constexpr uint64_t match_slice_ns = 10'000'000;
/// Delay until a failed publisher is tried again.
constexpr uint64_t retry_ns = 100'000'000;

}  // namespace

ReplyWriters::ReplyWriters(Reader &requests, const Endpoint &replies)
    : context_(requests.node().context), requests_(requests), replies_(replies) {
  context_.add(*this);
  // Clients may have come before.
  myelin_guard_condition_trigger(context_.graph->guard());
}

ReplyWriters::~ReplyWriters() { context_.remove(*this); }

void ReplyWriters::close() { writers_.clear(); }

std::shared_ptr<Writer> ReplyWriters::open(uint64_t client) const {
  Endpoint own = replies_;
  own.client = client;
  // As deep as the client's own queue.
  if (const auto found = context_.graph->find(client)) own.qos.depth = std::max(own.qos.depth, found->qos.depth);
  return std::make_shared<Writer>(context_, std::move(own));
}

std::shared_ptr<Writer> ReplyWriters::to(uint64_t client) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = writers_.find(client);
    if (found != writers_.end()) return found->second;
  }
  // Without the lock, because opening waits for the client's process. If another thread has been faster, its publisher
  // is used.
  std::shared_ptr<Writer> made = open(client);
  const std::lock_guard<std::mutex> lock(mutex_);
  return writers_.emplace(client, std::move(made)).first->second;
}

/// If the graph's thread has seen the end of a client before its publisher was there, nobody else closes it.
void ReplyWriters::forget(uint64_t client) {
  Writers::node_type gone;
  const std::lock_guard<std::mutex> lock(mutex_);
  gone = writers_.extract(client);
}

uint64_t ReplyWriters::poll_events() {
  const uint64_t next_ns = requests_.poll_events();
  const uint64_t version = requests_.peers_version();
  if (version == version_) return next_ns;
  const std::vector<uint64_t> clients = requests_.publishers_here();
  Writers gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = writers_.begin(); at != writers_.end();) {
      const auto here = at++;
      if (!std::binary_search(clients.begin(), clients.end(), here->first)) gone.insert(writers_.extract(here));
    }
  }
  try {
    for (const uint64_t client : clients) to(client);
  } catch (const std::exception &error) {
    if (!has_failed_) {
      RCUTILS_LOG_ERROR_NAMED(identifier, "%s: a client gets no replies yet: %s", replies_.topic.c_str(), error.what());
    }
    has_failed_ = true;
    return std::min(next_ns, myelin_now() + retry_ns);
  }
  has_failed_ = false;
  version_ = version;
  return next_ns;
}

rmw_ret_t ReplyWriters::publish(uint64_t client, const void *reply, const cdr::RequestHeader &header) {
  if (!requests_.has_peer(client)) return RMW_RET_OK;
  const std::shared_ptr<Writer> writer = to(client);
  // The request may have arrived before the client has matched the reply topic.
  const uint64_t until_ns = myelin_now() + match_ns;
  while (writer->matched() == 0) {
    if (!requests_.has_peer(client)) {
      forget(client);
      return RMW_RET_OK;
    }
    if (writer->has_refused()) {
      RMW_SET_ERROR_MSG("the client requests more than the service offers");
      return RMW_RET_ERROR;
    }
    if (myelin_now() >= until_ns) {
      RMW_SET_ERROR_MSG("the client has not matched the reply topic");
      return RMW_RET_TIMEOUT;
    }
    const rmw_ret_t waited = writer->wait_for_match(match_slice_ns);
    if (waited != RMW_RET_OK && waited != RMW_RET_TIMEOUT) return waited;
  }
  const rmw_ret_t published = writer->publish(reply, &header);
  if (!requests_.has_peer(client)) forget(client);
  return published;
}

}  // namespace rmw_myelin
