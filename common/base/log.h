#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

/// The one place that knows the logging library. Thread-safe. Until `start` is called, lines go to stderr.
namespace ganymede::log {

enum class Level { debug, info, warn, error };

/// From here on lines go to `file` (appended, one line each: time, level, name, text) and, from level `warn` on,
/// to stderr if `echo`. Throws Error when the file cannot be opened.
void start(const std::string& name, const std::string& file, bool echo, Level lowest = Level::info);

/// Writes what is buffered. Called before exit and by crash handlers.
void flush();

void write(Level level, std::string_view text);

/// The last lines that this process logged, oldest first (at most `count` ≤ 64).
std::vector<std::string> last_lines(int count);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace ganymede::log
