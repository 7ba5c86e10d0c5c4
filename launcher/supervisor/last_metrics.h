#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/supervisor/skips.h"

namespace ganymede::launcher {

/// What the last whole line of a metrics file says.
struct LastMetrics {
  std::uint64_t step = 0;
  double loss = 0;  // NaN when it was not finite
  int restarts = 0;
  SkipCounts skips;
};

/// Reads the end of the file (at most the last MiB); changes nothing. Nothing when there is no file or no whole line.
std::optional<LastMetrics> read_last_metrics(const std::string& path);

/// What the lines of a metrics file that lies there when a run is taken up belong to.
struct MetricsOrigin {
  std::uint64_t load_step = 0, decided = 0;  // of the cells
  bool load_from_other = false;              // load_step is of another run's checkpoint
};

/// Moves the metrics of an earlier attempt that left no checkpoint to `path`.old: a run that begins anew has no line
/// before its first step. Returns a line that says so; empty when nothing was moved. Throws Error.
std::string set_aside_older_metrics(const std::string& path, const MetricsOrigin& origin);

}  // namespace ganymede::launcher
