#pragma once

#include "writer.hpp"

namespace rmw_myelin {

/// `rmw_publisher_t::data`.
struct Publisher {
  Publisher(Node &node, Endpoint endpoint, std::string name)
      : writer(node, std::move(endpoint)), topic_name(std::move(name)) {}

  Writer writer;
  std::string topic_name;
};

}  // namespace rmw_myelin
