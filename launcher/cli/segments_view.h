#pragma once

#include <string>

namespace ganymede::cli {

/// What the keeper of the current run directory holds: segments with size, NUMA nodes and purpose, and every tensor in
/// them, as two tables or as JSON ([{"name", "bytes", "holds", "numa_nodes", "entries": [{"name", "type", "shape",
/// "offset", "bytes"}], "buckets": [{"name", "offset", "bytes"}]}]). Throws Error.
std::string segments_text();
std::string segments_json();

}  // namespace ganymede::cli
