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

constexpr auto first_after = std::chrono::seconds(2);
constexpr auto again_after = std::chrono::milliseconds(200);

}  // namespace

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(total),
      begin_(Clock::now()),
      shown_(begin_ + first_after - again_after),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) print_error("\r\x1b[K");
}

void Progress::at(std::uint64_t done) {
  if (!terminal_) return;
  auto now = Clock::now();
  if (now < shown_ + again_after) return;
  shown_ = now;
  visible_ = true;
  double seconds = std::chrono::duration<double>(now - begin_).count();
  if (total_ == 0 || done == 0) {
    print_error("\r\x1b[K{} | {}", what_, human_seconds(seconds));
  } else {
    double left = seconds * (static_cast<double>(total_) / static_cast<double>(done) - 1);
    print_error("\r\x1b[K{} | {} of {} | {}% | {} left", what_, human_bytes(static_cast<double>(done)),
                human_bytes(static_cast<double>(total_)), std::min<std::uint64_t>(done * 100 / total_, 100),
                human_seconds(left < 0 ? 0 : left));
  }
}

void Progress::show() {
  if (!terminal_) return;
  visible_ = true;
  print_error("\r\x1b[K{}", what_);
}

}  // namespace ganymede::data
