// What every file needs: who we are, how arguments are checked, how an error of the library is told.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "myelin.h"
#include "rcutils/logging_macros.h"
#include "rmw/error_handling.h"
#include "rmw/rmw.h"
#if __has_include("rmw/check_type_identifiers_match.h")
#include "rmw/check_type_identifiers_match.h"
#else  // Humble
#include "rmw/impl/cpp/macros.hpp"
#endif

namespace rmw_myelin {

/// What `RMW_IMPLEMENTATION` names, and the name of the logger.
extern const char *const identifier;

/// The return value that says most of what a code of the library says.
rmw_ret_t ret_of(myelin_code code);

/// Sets the error to `what` and what the library has to say, and returns its code as ours.
rmw_ret_t fail(myelin_code code, const char *what);

/// Sets the error to the exception that is being handled: what a function of rmw then returns.
rmw_ret_t contained() noexcept;

/// `CLOCK_REALTIME` in nanoseconds, as ROS 2 stamps messages.
int64_t wall_ns();

/// A thread that runs `body` and takes no signals: they are for the program's own threads.
std::thread start_thread(std::function<void()> body);

/// A duration in nanoseconds; `MYELIN_FOREVER` for the infinite one and for what does not fit.
uint64_t nanoseconds(const rmw_time_t &time);

}  // namespace rmw_myelin

/// Behind the body of a function of rmw that begins with `try`: its caller is C.
#define CONTAIN catch (...) { return ::rmw_myelin::contained(); }
#define CONTAIN_OR_NULL catch (...) { ::rmw_myelin::contained(); return nullptr; }

/// The argument is there.
#define CHECK_ARGUMENT(argument) RMW_CHECK_ARGUMENT_FOR_NULL(argument, RMW_RET_INVALID_ARGUMENT)

/// What the few functions return that say of a NULL something else than the rest. From Kilted on, which has no
/// such header any more, they say the same.
#if __has_include("rmw/localhost.h")
#define RET_OF_NULL RMW_RET_ERROR
#else
#define RET_OF_NULL RMW_RET_INVALID_ARGUMENT
#endif

/// The handle is there, and of this implementation.
#define CHECK_HANDLE(handle)                                                          \
  CHECK_ARGUMENT(handle);                                                             \
  RMW_CHECK_TYPE_IDENTIFIERS_MATCH(                                                   \
      handle, (handle)->implementation_identifier, ::rmw_myelin::identifier,          \
      return RMW_RET_INCORRECT_RMW_IMPLEMENTATION)

/// The same in functions that return a pointer.
#define CHECK_HANDLE_OR_NULL(handle)                                                  \
  RMW_CHECK_ARGUMENT_FOR_NULL(handle, nullptr);                                       \
  RMW_CHECK_TYPE_IDENTIFIERS_MATCH(                                                   \
      handle, (handle)->implementation_identifier, ::rmw_myelin::identifier, return nullptr)

/// The publisher's or subscription's messages can be loaned.
#define CHECK_CAN_LOAN(endpoint)                                                      \
  if (!(endpoint)->can_loan_messages) {                                               \
    RMW_SET_ERROR_MSG("messages of this type cannot be loaned");                      \
    return RMW_RET_UNSUPPORTED;                                                       \
  }
