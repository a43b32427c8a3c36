// Which CycloneDDS this works with: `departure` uses a struct of which CycloneDDS installs no header, and the
// plug-in's interface may change in any release.
#pragma once

namespace psmx_myelin {

/// Throws a std::runtime_error if the CycloneDDS that is loaded, or the one whose headers this was built with, is
/// of a version that was not tested.
void check_version();

}  // namespace psmx_myelin
