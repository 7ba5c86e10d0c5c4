#pragma once

#include <string>
#include <string_view>

namespace ganymede {

/// The text on one line of a terminal, without effect on it: a line end as \n, a tab as \t, every other control
/// character as \x1b. All else, UTF-8 as well, stays.
std::string printable(std::string_view text);

/// Whether that changes it.
bool has_controls(std::string_view text);

}  // namespace ganymede
