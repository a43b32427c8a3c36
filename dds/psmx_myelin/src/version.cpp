#include "version.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "dds/dds.h"
#include "dds/version.h"

namespace psmx_myelin {
namespace {

/// Before you add a version: run the tests of crates/myelin-dds/tests/psmx, and check `MatchedReader` in departure.cpp.
constexpr const char *tested[] = {"11.0.1"};

bool is_tested(const std::string &version) {
  return std::find(std::begin(tested), std::end(tested), version) != std::end(tested);
}

/// Returns the file that CycloneDDS was loaded from.
std::string loaded_from() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&dds_create_participant), &info) == 0) return "";
  char *resolved = realpath(info.dli_fname, nullptr);
  const std::string path = resolved != nullptr ? resolved : info.dli_fname;
  free(resolved);
  return path;
}

/// Returns the version in a library's name, after `.so.`. Without one returns the version of the headers, because
/// CycloneDDS has no function for it.
std::string version_of(const std::string &path) {
  const size_t at = path.rfind(".so.");
  return at == std::string::npos ? DDS_VERSION : path.substr(at + 4);
}

[[noreturn]] void refuse(const std::string &what) {
  std::string known;
  for (const char *version : tested) known += (known.empty() ? "" : ", ") + std::string(version);
  throw std::runtime_error(what + ", which was not tested; psmx_myelin works with CycloneDDS " + known +
                           ": use that version, or a psmx_myelin for the other one");
}

}  // namespace

void check_version() {
  if (!is_tested(DDS_VERSION)) refuse(std::string("the plug-in was built with CycloneDDS ") + DDS_VERSION);
  const std::string path = loaded_from();
  const std::string loaded = version_of(path);
  if (!is_tested(loaded)) refuse("the program has CycloneDDS " + loaded + " (" + path + ")");
}

}  // namespace psmx_myelin
