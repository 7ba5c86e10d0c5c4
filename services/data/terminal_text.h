#pragma once

#include <string>
#include <string_view>

namespace ganymede::data {

/// Makes text that a model wrote safe to show: on a terminal, control characters would move the cursor, change colours
/// or give orders. In their place (except line end and tab), and in that of bytes that are no UTF-8, stands U+FFFD.
/// Characters may come in pieces. Not thread-safe.
class TerminalText {
 public:
  /// What can be shown after `bytes`: whole characters; the beginning of one waits for its rest.
  std::string take(std::string_view bytes);
  /// What stands for a character whose rest has not come.
  std::string end();

 private:
  std::string waiting_;  // at most three bytes
};

}  // namespace ganymede::data
