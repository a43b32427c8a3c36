#pragma once

#include <mutex>
#include <unordered_map>

#include "reader.hpp"

namespace rmw_myelin {

/// What `rmw_subscription_t::data` is.
struct Subscription {
  Subscription(Node &node, Endpoint endpoint, const rmw_subscription_options_t &options,
               std::string name);

  Reader reader;
  std::string topic_name;
  /// Samples that have been lent, by their message.
  std::mutex mutex;
  std::unordered_map<const void *, Sample> lent;
  uint64_t received = 0;
};

}  // namespace rmw_myelin
