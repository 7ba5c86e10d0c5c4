#pragma once

#include <string>

namespace ganymede::cli {

/// What the keeper of the current run directory holds: every segment with its tensors, as a table or as JSON
/// ([{"name", "bytes", "entries": [{"name", "type", "shape", "offset", "bytes"}]}]). Throws Error.
std::string segments_text();
std::string segments_json();

}  // namespace ganymede::cli
