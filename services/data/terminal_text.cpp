#include "services/data/terminal_text.h"

#include <algorithm>
#include <cstddef>

#include "services/data/utf8.h"

namespace ganymede::data {
namespace {

constexpr const char* replacement = "\xef\xbf\xbd";  // U+FFFD

/// Of a character with this first byte.
std::size_t length_of(unsigned char first) {
  if (first >= 0xf8) return 1;  // of none
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// `character` is well-formed.
bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
}

}  // namespace

std::string TerminalText::take(std::string_view bytes) {
  std::string text = waiting_ + std::string(bytes), shown;
  waiting_.clear();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t most = std::min(length_of(static_cast<unsigned char>(text[at])), text.size() - at), size = 1;
    while (size < most && is_continuation(text[at + size])) ++size;
    std::string_view character = std::string_view(text).substr(at, size);
    if (at + size == text.size() && size < length_of(static_cast<unsigned char>(text[at]))) {
      waiting_ = character;
      return shown;
    }
    shown += is_utf8(character) && !is_control(character) ? character : replacement;
    at += size;
  }
  return shown;
}

std::string TerminalText::end() {
  bool lacks = !waiting_.empty();
  waiting_.clear();
  return lacks ? replacement : "";
}

}  // namespace ganymede::data
