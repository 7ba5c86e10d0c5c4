#pragma once

#include <string_view>

namespace ganymede::data {

/// Whether all of `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

}  // namespace ganymede::data
