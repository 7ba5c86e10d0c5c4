#pragma once

#include <string>

namespace ganymede::cli {

/// One line: version, commit that was built (with "-dirty" when files differed from it; "unknown" outside a git
/// checkout), build type, sanitizers.
std::string version_text();

}  // namespace ganymede::cli
