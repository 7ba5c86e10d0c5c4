#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace ganymede {

/// Says something on stderr, at once. Where stderr cannot be written (its reader went away, its disk is full) there is
/// nobody left to tell: nothing is thrown, unlike by fmt::print, which from a catch block would abort the program.
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace ganymede
