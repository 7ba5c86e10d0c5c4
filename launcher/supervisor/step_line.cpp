#include "launcher/supervisor/step_line.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/text.h"

namespace ganymede::launcher {
namespace {

/// "3.0e-4": one digit after the point, exponent without leading zeros.
std::string short_scientific(double value) {
  std::string text = fmt::format("{:.1e}", value);
  auto exponent = text.find('e');
  if (exponent == std::string::npos) return text;  // nan, inf
  return fmt::format("{}e{}", text.substr(0, exponent), std::stoi(text.substr(exponent + 1)));
}

/// "17.0", "0.845", "1.23e+03": of one width as long as the magnitude stays.
std::string three_digits(double value) {
  std::string text = fmt::format("{:#.3g}", value);
  if (text.find('.') == 3) text.resize(3);  // "123.0"
  return text;
}

std::string percent(double share) {
  return share < 0.0095 ? fmt::format("{:.1f}%", 100 * share) : fmt::format("{:.0f}%", 100 * share);
}

std::string step_time(double seconds) {
  return seconds < 10 ? fmt::format("{} ms", with_commas(std::llround(1e3 * seconds))) : human_seconds(seconds);
}

constexpr double gib = 1024.0 * 1024 * 1024;

}  // namespace

std::string step_line(const StepFigures& figures) {
  std::string line = fmt::format("step {}/{} | loss {:.3f}", figures.step, figures.steps, figures.loss);
  auto part = [&line](const std::string& text) { line += " | " + text; };
  if (figures.skipped) part("skipped");
  if (figures.grad_norm) part("norm " + three_digits(*figures.grad_norm));
  if (figures.lr) part("lr " + short_scientific(*figures.lr));
  if (figures.step_seconds) part(step_time(*figures.step_seconds));
  if (figures.tokens_per_second) part(with_commas(std::llround(*figures.tokens_per_second)) + " tok/s");
  if (figures.eta_seconds) part("eta " + human_seconds(*figures.eta_seconds));
  if (figures.mfu) part("mfu " + percent(*figures.mfu));
  if (figures.memory)
    part(fmt::format("mem {:.1f}/{:.1f} GiB", figures.memory->used / gib, figures.memory->limit / gib));
  if (figures.imbalance) part(fmt::format("imbalance {:.2f}", *figures.imbalance));
  return line;
}

}  // namespace ganymede::launcher
