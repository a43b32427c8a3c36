// Publishers of replies. On this host a service publishes the replies to each client on a topic of its own, so that a
// client gets no replies to others. All clients on other hosts and of other RMWs share one topic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "reader.hpp"
#include "writer.hpp"

namespace rmw_myelin {

/// One publisher of replies for each client on this host. It exists as long as service and client do. Any thread may
/// use it.
class ReplyWriters : public EventSource {
 public:
  /// `replies` is the topic that all clients share. Both arguments must outlive this object.
  ReplyWriters(Reader &requests, const Endpoint &replies);
  ~ReplyWriters() override;
  ReplyWriters(const ReplyWriters &) = delete;
  ReplyWriters &operator=(const ReplyWriters &) = delete;

  /// Publishes a reply. `client` is the id of the publisher of the client's requests. Does nothing if the client has
  /// gone.
  rmw_ret_t publish(uint64_t client, const void *reply, const cdr::RequestHeader &header);

  Events &events() override { return requests_.events(); }
  /// Opens and closes publishers, so that each client on this host has one. Called by the graph's thread.
  uint64_t poll_events() override;
  void close() override;

 private:
  using Writers = std::map<uint64_t, std::shared_ptr<Writer>>;
  /// Returns the publisher for a client and opens it if necessary. Throws a std::runtime_error.
  std::shared_ptr<Writer> to(uint64_t client);
  std::shared_ptr<Writer> open(uint64_t client) const;
  /// Closes the publisher for a client that has gone.
  void forget(uint64_t client);

  rmw_context_impl_t &context_;
  Reader &requests_;
  const Endpoint &replies_;
  std::mutex mutex_;
  Writers writers_;

  // For the graph's thread only: the version of the clients it has seen, and whether it has logged that one has no
  // publisher.
  uint64_t version_ = 0;
  bool has_failed_ = false;
};

}  // namespace rmw_myelin
