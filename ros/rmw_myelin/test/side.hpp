// Common parts of the programs that test rmw.h: checks, and a context with a node.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rcutils/allocator.h"
#include "rmw/error_handling.h"
#include "rmw/rmw.h"

inline void check(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s: %s\n", what, rmw_get_error_string().str);
  std::exit(1);
}

#define CHECK(condition) check((condition), #condition)
#define OK(call) check((call) == RMW_RET_OK, #call)

/// A context with a node.
struct Side {
  explicit Side(const char *name) {
    rmw_init_options_t options = rmw_get_zero_initialized_init_options();
    OK(rmw_init_options_init(&options, rcutils_get_default_allocator()));
    options.enclave = strdup("/");
#if __has_include("rmw/discovery_options.h")
    options.discovery_options.automatic_discovery_range = RMW_AUTOMATIC_DISCOVERY_RANGE_OFF;
#endif
    OK(rmw_init(&options, &context));
    OK(rmw_init_options_fini(&options));
    CHECK((node = rmw_create_node(&context, name, "/")) != nullptr);
  }
  ~Side() {
    OK(rmw_destroy_node(node));
    OK(rmw_shutdown(&context));
    OK(rmw_context_fini(&context));
  }

  rmw_context_t context = rmw_get_zero_initialized_context();
  rmw_node_t *node;
};
