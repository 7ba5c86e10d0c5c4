#include "launcher/supervisor/time_limit.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>

#include "common/base/printable.h"
#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

constexpr double latest_end = 1e11;  // in some 3,000 years; the printed date of a later one would be wrong

std::string clock_time(double moment) {
  return fmt::format("{:%F %T}", fmt::localtime(static_cast<std::time_t>(moment)));
}

std::optional<double> read_moment(const char* text) {
  double moment = 0;
  const char* end = text + std::strlen(text);
  auto [stopped, error] = std::from_chars(text, end, moment, std::chars_format::fixed);
  bool good = error == std::errc() && stopped == end && moment > 0 && moment < latest_end;
  return good ? std::optional(moment) : std::nullopt;
}

void keep(std::deque<double>& times, double seconds, std::size_t most) {
  times.push_back(seconds);
  if (times.size() > most) times.pop_front();
}

double longest(const std::deque<double>& times) { return times.empty() ? 0 : *std::ranges::max_element(times); }

}  // namespace

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TimeLimit::TimeLimit(const char* text, double now, double margin, double saved_bytes)
    : margin_(margin), assumed_save_(saved_bytes / assumed_bytes_a_second) {
  if (text == nullptr) return;
  auto end = read_moment(text);
  if (!end) {
    warning_ = fmt::format(
        "{} is \"{}\", which is no time in seconds since 1970: the run does not stop by itself before "
        "its job ends.",
        variable, printable(text));
  } else if (*end <= now) {
    warning_ = fmt::format("{} is {} ({}), which is over: the run does not stop by itself before its job ends.",
                           variable, text, clock_time(*end));
  } else {
    end_ = end;
  }
}

void TimeLimit::step_took(double seconds) { keep(steps_, seconds, steps_kept); }

void TimeLimit::save_took(double seconds) { keep(saves_, seconds, saves_kept); }

double TimeLimit::step() const { return longest(steps_); }

double TimeLimit::save() const { return saves_.empty() ? assumed_save_ : longest(saves_); }

std::optional<std::string> TimeLimit::due(double now) const {
  if (!end_ || now + step() + save() + margin_ < *end_) return std::nullopt;
  return fmt::format(
      "the job ends at {} ({}), in {}: a step takes up to {}, a checkpoint {}{}, and {} are kept free "
      "(launch.end_margin_seconds), so the run stops now",
      clock_time(*end_), variable, human_seconds(std::max(0.0, *end_ - now)), human_seconds(step()),
      saves_.empty() ? "perhaps " : "up to ", human_seconds(save()), human_seconds(margin_));
}

}  // namespace ganymede::launcher
