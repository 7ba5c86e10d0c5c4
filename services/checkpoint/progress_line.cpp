#include "services/checkpoint/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "common/base/standard_error.h"
#include "common/base/text.h"

namespace ganymede::checkpoint {
namespace {

constexpr auto quiet_for = std::chrono::seconds(2);
constexpr auto between_lines = std::chrono::milliseconds(200);

}  // namespace

ProgressLine::ProgressLine(std::string doing) : doing_(std::move(doing)), terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(std::uint64_t done, std::uint64_t total) {
  auto now = Clock::now();
  if (!terminal_ || now - began_ < quiet_for || now - last_ < between_lines) return;
  last_ = now;
  shown_ = true;
  double seconds = std::chrono::duration<double>(now - began_).count();
  double rate = static_cast<double>(done) / seconds;
  double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  print_error("\r{} {} of {} ({}/s), {} left\033[K", doing_, human_bytes(static_cast<double>(done)),
              human_bytes(static_cast<double>(total)), human_bytes(rate), human_seconds(left));
}

void ProgressLine::clear() {
  if (shown_) print_error("\r\033[K");
  shown_ = false;
}

}  // namespace ganymede::checkpoint
