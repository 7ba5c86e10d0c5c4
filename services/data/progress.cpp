#include "services/data/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/standard_error.h"
#include "common/base/text.h"

namespace ganymede::data {
namespace {

/// When a line is said first, and how long after it the next.
struct Pace {
  Clock::duration first, again;
};

Pace pace(bool terminal) {
  using namespace std::chrono_literals;
  return terminal ? Pace{2s, 200ms} : Pace{10s, 30s};
}

}  // namespace

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, double seconds) {
  if (total == 0 || done == 0 || seconds <= 0) return fmt::format("{} | {}", what, human_seconds(seconds));
  double left = seconds * (static_cast<double>(total) / static_cast<double>(done) - 1);
  return fmt::format("{} | {} of {} | {}% | {}/s | {} left", what, human_bytes(static_cast<double>(done)),
                     human_bytes(static_cast<double>(total)), std::min<std::uint64_t>(done * 100 / total, 100),
                     human_bytes(static_cast<double>(done) / seconds), human_seconds(left < 0 ? 0 : left));
}

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      next_(begin_ + pace(terminal_).first) {}

Progress::~Progress() {
  if (visible_) print_error("\r\x1b[K");
}

void Progress::at(std::uint64_t done, Clock::time_point now) {
  if (now < next_) return;
  next_ = now + pace(terminal_).again;
  visible_ = terminal_;
  std::string text = progress_text(what_, done, total_, std::chrono::duration<double>(now - begin_).count());
  print_error("{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
}

void Progress::show() {
  visible_ = terminal_;
  print_error("{}{}{}", terminal_ ? "\r\x1b[K" : "", what_, terminal_ ? "" : "\n");
}

}  // namespace ganymede::data
