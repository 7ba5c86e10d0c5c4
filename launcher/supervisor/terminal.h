#pragma once

#include <string>
#include <string_view>

namespace ganymede::launcher {

/// What a person sees while a run goes. On a terminal one live line is rewritten in place below the permanent ones;
/// anywhere else there are permanent lines alone, without control characters. A reader that went away is no fault.
/// Not thread-safe.
class Terminal {
 public:
  /// `fd` stays the caller's; `interactive`: it is a terminal.
  Terminal(int fd, bool interactive) : fd_(fd), interactive_(interactive) {}
  explicit Terminal(int fd);
  /// Leaves the cursor on a line of its own.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// One permanent line (or several, separated by newlines).
  void line(std::string_view text);
  /// Replaces the live line, without whole fields (" | ") at its end that do not fit. Nothing unless it is a terminal.
  void live(std::string_view text);

 private:
  void write(const std::string& text);
  int fd_;
  bool interactive_;
  std::string live_;
};

}  // namespace ganymede::launcher
