// What every file needs: how something is said, and how no exception leaves the plug-in.
#pragma once

#include <exception>

#include "dds/dds.h"
#include "dds/ddsrt/log.h"
#include "myelin.h"

/// By CycloneDDS's log: to stderr, or where the program's configuration sends it. (Its own macros are C's.)
#define SAY(category, format, ...) \
  dds_log(category, __FILE__, __LINE__, __func__, "psmx_myelin: " format "\n", __VA_ARGS__)
#define SAY_ERROR(format, ...) SAY(DDS_LC_ERROR, format, __VA_ARGS__)
#define SAY_WARNING(format, ...) SAY(DDS_LC_WARNING, format, __VA_ARGS__)

namespace psmx_myelin {

/// What `act` returns, or `failed` if it throws: CycloneDDS is C.
template <typename Result, typename Act>
Result guarded(Result failed, Act act) noexcept {
  try {
    return act();
  } catch (const std::exception &error) {
    SAY_ERROR("%s", error.what());
    return failed;
  }
}

/// The return value that says most of what a code of the library says.
inline dds_return_t return_of(myelin_code code) {
  switch (code) {
    case MYELIN_OK: return DDS_RETCODE_OK;
    case MYELIN_ERROR_RELIABLE_TIMEOUT: return DDS_RETCODE_TIMEOUT;
    case MYELIN_ERROR_MEMORY:
    case MYELIN_ERROR_TOO_MANY: return DDS_RETCODE_OUT_OF_RESOURCES;
    default: return DDS_RETCODE_ERROR;
  }
}

}  // namespace psmx_myelin
