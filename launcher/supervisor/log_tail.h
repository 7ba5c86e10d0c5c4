#pragma once

#include <string>
#include <vector>

#include "launcher/supervisor/service_id.h"

namespace ganymede::launcher {

/// The last lines (at most `count` of each) of a service's log and of what it printed, oldest first, each indented.
/// Reads at most the last 16 KiB of a file; what cannot be read is left out. Empty or lines that each end in a newline.
std::string last_log_lines(const ServiceId& id, int count);

/// The last `count` lines of `text` that are not empty.
std::vector<std::string> last_lines(const std::string& text, int count);

}  // namespace ganymede::launcher
