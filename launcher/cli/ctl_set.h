#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// `ganymede ctl RUN set KEY=VALUE…`: orders a change, waits until a step follows it and prints from which one on.
/// Throws Error(usage) for a key or value that cannot be, Error when the run refuses it or ends, or when it is not in
/// force after `seconds`; then it stays ordered.
void set(const std::string& run, const std::vector<std::string>& changes, double seconds);

}  // namespace ganymede::cli
