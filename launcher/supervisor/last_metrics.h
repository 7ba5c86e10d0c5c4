#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ganymede::launcher {

/// What the last whole line of a metrics file says.
struct LastMetrics {
  std::uint64_t step = 0;
  double loss = 0;  // NaN when it was not finite
  int restarts = 0;
  std::uint64_t skipped_steps = 0;
};

/// Reads the end of the file (at most the last MiB); changes nothing. Nothing when there is no file or no whole line.
std::optional<LastMetrics> read_last_metrics(const std::string& path);

}  // namespace ganymede::launcher
