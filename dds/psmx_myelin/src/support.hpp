// Common helpers: logging, and the barrier that keeps exceptions inside the plug-in.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <thread>

#include "dds/dds.h"
#include "dds/ddsrt/log.h"
#include "myelin.h"

/// Logs through CycloneDDS: to stderr, or wherever the program's configuration sends it. CycloneDDS's own macros work
/// in C only.
#define PSMX_LOG(category, format, ...) \
  dds_log(category, __FILE__, __LINE__, __func__, "psmx_myelin: " format "\n", __VA_ARGS__)
#define PSMX_ERROR(format, ...) PSMX_LOG(DDS_LC_ERROR, format, __VA_ARGS__)
#define PSMX_WARNING(format, ...) PSMX_LOG(DDS_LC_WARNING, format, __VA_ARGS__)

namespace psmx_myelin {

/// Returns the result of `act`. If it throws, logs the reason and returns `failed`, because CycloneDDS is C.
template <typename Result, typename Act>
Result guarded(Result failed, Act act) noexcept {
  try {
    return act();
  } catch (const std::exception &error) {
    PSMX_ERROR("%s", error.what());
    return failed;
  }
}

/// Returns the DDS code that is closest to the library's.
inline dds_return_t return_of(myelin_code code) {
  switch (code) {
    case MYELIN_OK: return DDS_RETCODE_OK;
    case MYELIN_ERROR_RELIABLE_TIMEOUT: return DDS_RETCODE_TIMEOUT;
    case MYELIN_ERROR_MEMORY:
    case MYELIN_ERROR_TOO_MANY: return DDS_RETCODE_OUT_OF_RESOURCES;
    default: return DDS_RETCODE_ERROR;
  }
}

/// Starts a thread that runs `body` with all signals blocked: the program may wait for signals in a thread of its own
/// (`sigwait`).
template <typename Body>
std::thread start_thread(Body body) {
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
  std::thread thread(body);
  pthread_setname_np(thread.native_handle(), "psmx_myelin");
  return thread;
}

}  // namespace psmx_myelin
