#pragma once

#include <string>

#include "common/config/config.h"

namespace ganymede::worker {

/// Floating-point operations a second that a rank of this machine reaches in a matrix product: the most that was ever
/// measured in this run, kept in `file` (JSON) so that a restarted worker, or one that starts while the machine is
/// busy, does not change what `mfu` is relative to. Measures (some 0.2 s) and writes `file` when that is more than it
/// holds, or when it was made on another CPU, with other threads or another type. A damaged file is replaced. Throws
/// Error when it cannot be written.
double peak_flops(const config::Config& config, const std::string& file);

/// The same with a measurement of the caller's, on a CPU of that name.
double peak_flops(const config::Config& config, const std::string& file, const std::string& cpu, double measured);

}  // namespace ganymede::worker
