// Common helpers: the implementation's name, checks of arguments, and the library's errors in rmw's form.
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

/// The value of `RMW_IMPLEMENTATION`, and the name of the logger.
extern const char *const identifier;

/// Returns the rmw code that is closest to the library's.
rmw_ret_t ret_of(myelin_code code);

/// Sets the error to `what` and the library's message. Returns the matching rmw code.
rmw_ret_t fail(myelin_code code, const char *what);

/// Sets the error to the current exception, and returns its rmw code.
rmw_ret_t contained() noexcept;

/// `CLOCK_REALTIME` in nanoseconds, the clock of ROS 2's time stamps.
int64_t wall_ns();

/// Starts a thread that runs `body` with all signals blocked: they are for the program's own threads.
std::thread start_thread(std::function<void()> body);

/// Converts a duration to nanoseconds. Returns `MYELIN_FOREVER` if it is infinite or too long.
uint64_t nanoseconds(const rmw_time_t &time);

}  // namespace rmw_myelin

/// Follows the body of an rmw function that begins with `try`. Its caller is C, which knows no exceptions.
#define CONTAIN catch (...) { return ::rmw_myelin::contained(); }
#define CONTAIN_OR_NULL catch (...) { ::rmw_myelin::contained(); return nullptr; }

/// Returns an error if the argument is NULL.
#define CHECK_ARGUMENT(argument) RMW_CHECK_ARGUMENT_FOR_NULL(argument, RMW_RET_INVALID_ARGUMENT)

/// Some functions return another code for NULL than the rest, up to Jazzy. Since Kilted, which dropped this header, all
/// return the same code.
#if __has_include("rmw/localhost.h")
#define RET_OF_NULL RMW_RET_ERROR
#else
#define RET_OF_NULL RMW_RET_INVALID_ARGUMENT
#endif

/// Returns an error if the handle is NULL or of another implementation.
#define CHECK_HANDLE(handle)                                                          \
  CHECK_ARGUMENT(handle);                                                             \
  RMW_CHECK_TYPE_IDENTIFIERS_MATCH(                                                   \
      handle, (handle)->implementation_identifier, ::rmw_myelin::identifier,          \
      return RMW_RET_INCORRECT_RMW_IMPLEMENTATION)

/// The same for functions that return a pointer.
#define CHECK_HANDLE_OR_NULL(handle)                                                  \
  RMW_CHECK_ARGUMENT_FOR_NULL(handle, nullptr);                                       \
  RMW_CHECK_TYPE_IDENTIFIERS_MATCH(                                                   \
      handle, (handle)->implementation_identifier, ::rmw_myelin::identifier, return nullptr)

/// Returns an error if messages of the publisher or subscription cannot be loaned.
#define CHECK_CAN_LOAN(endpoint)                                                      \
  if (!(endpoint)->can_loan_messages) {                                               \
    RMW_SET_ERROR_MSG("messages of this type cannot be loaned");                      \
    return RMW_RET_UNSUPPORTED;                                                       \
  }
