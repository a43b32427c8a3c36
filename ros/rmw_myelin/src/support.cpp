#include "support.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace rmw_myelin {

const char *const identifier = "rmw_myelin";

rmw_ret_t ret_of(myelin_code code) {
  switch (code) {
    case MYELIN_OK:
    case MYELIN_NOTHING:
      return RMW_RET_OK;
    case MYELIN_ERROR_MEMORY:
      return RMW_RET_BAD_ALLOC;
    case MYELIN_ERROR_SETTING:
      return RMW_RET_INVALID_ARGUMENT;
    case MYELIN_ERROR_RELIABLE_TIMEOUT:
      return RMW_RET_TIMEOUT;
    default:
      return RMW_RET_ERROR;
  }
}

rmw_ret_t fail(myelin_code code, const char *what) {
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("%s: %s", what, myelin_error_message());
  return ret_of(code);
}

rmw_ret_t contained() noexcept try {
  throw;
} catch (const std::bad_alloc &) {
  RMW_SET_ERROR_MSG("out of memory");
  return RMW_RET_BAD_ALLOC;
} catch (const std::exception &error) {
  RMW_SET_ERROR_MSG(error.what());
  return RMW_RET_ERROR;
} catch (...) {
  RMW_SET_ERROR_MSG("an unknown exception");
  return RMW_RET_ERROR;
}

int64_t wall_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::thread start_thread(std::function<void()> body) {
  struct Blocked {
    sigset_t before;
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  };
  const Blocked blocked;
  std::thread thread(std::move(body));
  pthread_setname_np(thread.native_handle(), identifier);
  return thread;
}

uint64_t nanoseconds(const rmw_time_t &time) {
  const uint64_t second = 1'000'000'000;
  if (time.sec >= static_cast<uint64_t>(INT64_MAX) / second) return MYELIN_FOREVER;
  const uint64_t whole = time.sec * second;
  return time.nsec >= INT64_MAX - whole ? MYELIN_FOREVER : whole + time.nsec;
}

}  // namespace rmw_myelin
