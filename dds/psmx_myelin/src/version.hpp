// Checks the version of CycloneDDS. `departure` uses a struct whose header CycloneDDS does not install, and the plug-in
// interface may change in any release.
#pragma once

namespace psmx_myelin {

/// Throws a std::runtime_error if the loaded CycloneDDS, or the one of the headers at build time, is of a version that
/// was not tested.
void check_version();

}  // namespace psmx_myelin
