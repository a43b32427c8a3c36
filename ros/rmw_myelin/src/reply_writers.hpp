// The ways back of a service: on this host each client has a topic of its own for its replies, so that those to
// others are not among them. Clients on other hosts, and of other RMWs, have theirs by the topic that all share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "reader.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// A publisher for each client on this host, as long as both are there. Any thread may use it.
class ReplyWriters : public EventSource {
 public:
  /// `replies` is the topic that all share. Both have to live longer.
  ReplyWriters(Reader &requests, const Endpoint &replies);
  ~ReplyWriters() override;
  ReplyWriters(const ReplyWriters &) = delete;
  ReplyWriters &operator=(const ReplyWriters &) = delete;

  /// Replies to the client whose requests this publisher publishes. Nothing happens if it has gone.
  rmw_ret_t publish(uint64_t client, const void *reply, const cdr::RequestHeader &header);

  Events &events() override { return requests_.events(); }
  /// By the graph's thread: has a publisher for each client there is, and for no other.
  uint64_t poll_events() override;
  void close() override;

 private:
  using Writers = std::map<uint64_t, std::shared_ptr<Writer>>;
  /// The one for a client, made if there is none yet; NULL if the client asks for more than the service offers.
  /// Throws a std::runtime_error.
  std::shared_ptr<Writer> to(uint64_t client);
  std::shared_ptr<Writer> open(uint64_t client) const;

  rmw_context_impl_t &context_;
  Reader &requests_;
  const Endpoint &replies_;
  std::mutex mutex_;
  Writers writers_;

  // The graph's thread's own: which clients there were, and whether people have been told that one has no publisher.
  uint64_t version_ = 0;
  bool has_failed_ = false;
};

}  // namespace rmw_myelin
