#pragma once

#include <string>
#include <vector>

#include "launcher/supervisor/service_id.h"

namespace ganymede::launcher {

/// The last words of a service's log and of what it printed, oldest first, each on an indented line that begins with a
/// newline. Reads at most the last 16 KiB of a file; what cannot be read is left out.
std::string last_log_lines(const ServiceId& id, int count);

/// The last lines of a program's output: from its last crash with the stack, if it has one, else the last `count`.
std::vector<std::string> last_words(const std::string& text, int count);

/// The last `count` lines of `text` that are not empty.
std::vector<std::string> last_lines(const std::string& text, int count);

}  // namespace ganymede::launcher
