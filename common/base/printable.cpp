#include "common/base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace ganymede {
namespace {

bool is_control(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_control(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

bool has_controls(std::string_view text) { return std::any_of(text.begin(), text.end(), is_control); }

}  // namespace ganymede
