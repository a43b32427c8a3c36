#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "reader.hpp"

namespace rmw_myelin {

/// A message on loan: the sample that contains it, or a copy.
struct Loaned {
  Sample sample;
  std::vector<uint64_t> copy;
};

/// `rmw_subscription_t::data`.
struct Subscription {
  Subscription(Node &node, Endpoint endpoint, const rmw_subscription_options_t &options,
               std::string name);

  Reader reader;
  std::string topic_name;
  /// Guards `lent`, the loans by the address of their message.
  std::mutex mutex;
  std::unordered_map<const void *, Loaned> lent;
  uint64_t received = 0;
};

}  // namespace rmw_myelin
