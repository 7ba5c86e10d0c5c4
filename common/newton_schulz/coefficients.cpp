#include "common/newton_schulz/coefficients.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "common/base/text.h"

namespace ganymede::newton_schulz {

namespace {

constexpr Coefficients jordan{3.4445, -4.7750, 2.0315};

/// Polar Express divides all but the last of its (eight) polynomials' arguments by 1.01, so that rounding cannot push a
/// singular value out of the interval in which they converge (arXiv:2505.16932, section 3.4 and appendix G).
constexpr Coefficients with_margin(double a, double b, double c) {
  constexpr double s = 1.01;
  return {a / s, b / (s * s * s), c / (s * s * s * s * s)};
}

Schedule ten_steps() {
  Schedule steps(8, jordan);
  steps.insert(steps.end(), 2, {2, -1.5, 0.5});
  return steps;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\n\r";
  const auto begin = text.find_first_not_of(space);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

double parse_number(std::string_view key, std::size_t step, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    fail_usage("{}: \"{}\" in triple {} is not a number; a step is three of them, as in \"3.4445,-4.775,2.0315\"", key,
               text, step + 1);
  }
  return value;
}

Schedule parse_list(std::string_view key, std::string_view text) {
  const auto triples = split(text, ';');
  if (triples.size() > most_steps) {
    fail_usage("{}: {} triples, one a step; at most {} are allowed", key, triples.size(), most_steps);
  }
  Schedule schedule;
  for (std::size_t step = 0; step < triples.size(); ++step) {
    const auto numbers = split(triples[step], ',');
    if (numbers.size() != 3) {
      fail_usage("{}: triple {}, \"{}\", has {}; a step is three numbers, as in \"3.4445,-4.775,2.0315\"", key,
                 step + 1, triples[step], numbers.size() == 1 ? "1 number" : fmt::format("{} numbers", numbers.size()));
    }
    schedule.push_back({parse_number(key, step, numbers[0]), parse_number(key, step, numbers[1]),
                        parse_number(key, step, numbers[2])});
  }
  return schedule;
}

[[noreturn]] void refuse_name(std::string_view key, std::string_view text) {
  std::vector<std::string> names;
  std::string listed;
  for (const auto& known : named_schedules()) {
    names.push_back(known.name);
    listed += (listed.empty() ? "" : ", ") + known.name;
  }
  const auto near = nearest(text, names);
  fail_usage("{}: no schedule is called \"{}\"{}; there are {}, or a list of triples as in \"3.4445,-4.775,2.0315; …\"",
             key, text, near.empty() ? "" : fmt::format(" (\"{}\"?)", near), listed);
}

}  // namespace

const std::vector<NamedSchedule>& named_schedules() {
  static const std::vector<NamedSchedule> schedules{
      // Keller Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.
      {"kj5", Schedule(5, jordan)},
      // You Jiacheng's, in modded-nanogpt and Megatron ("quintic").
      {"quintic5",
       {{4.0848, -6.8946, 2.9270},
        {3.9505, -6.3029, 2.6377},
        {3.7418, -5.5913, 2.3037},
        {2.8769, -3.1427, 1.2046},
        {2.8366, -3.0525, 1.2012}}},
      // Amsel, Persson, Musco, Gower, "The Polar Express", arXiv:2505.16932: the first five.
      {"polar_express5",
       {with_margin(8.28721201814563, -23.595886519098837, 17.300387312530933),
        with_margin(4.107059111542203, -2.9478499167379106, 0.5448431082926601),
        with_margin(3.9486908534822946, -2.908902115962949, 0.5518191394370137),
        with_margin(3.3184196573706015, -2.488488024314874, 0.51004894012372),
        with_margin(2.300652019954817, -1.6689039845747493, 0.4188073119525673)}},
      // Grishina, Smirnov, Rakhuba, "Accelerating Newton-Schulz Iteration … via Chebyshev-type Polynomials" (CANS),
      // arXiv:2506.10935; values as in NVIDIA's Emerging-Optimizers.
      {"cans5",
       {{8.4703, -25.1081, 18.6293},
        {4.1828, -3.1087, 0.5806},
        {3.9619, -2.9541, 0.5630},
        {3.2866, -2.4647, 0.5074},
        {2.2737, -1.6447, 0.4162}}},
      // Huang, "How Much Orthogonalization Does Muon Need?", arXiv:2606.00371: two products a step instead of three.
      {"cubic5",
       {{3.3656576, -3.3420992, 0},
        {2.5744352, -1.4957376, 0},
        {2.5368962, -1.4312570, 0},
        {2.4418906, -1.2764040, 0},
        {2.2230472, -0.9630650, 0}}},
      // DeepSeek-V4, arXiv:2606.19348: eight steps as in kj5, then two that settle at 1.
      {"ten_step", ten_steps()},
  };
  return schedules;
}

double apply(const Schedule& schedule, double singular_value) {
  double s = singular_value;
  for (const auto& [a, b, c] : schedule) s *= a + s * s * (b + s * s * c);
  return s;
}

std::pair<double, double> output_range(const Schedule& schedule) {
  constexpr int points = 10000;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (int i = 0; i < points; ++i) {
    const double value = apply(schedule, .01 + .99 * i / (points - 1));
    if (std::isnan(value)) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return {least, most};
}

bool withstands_bf16(const Schedule& schedule) {
  constexpr int points = 1000;
  constexpr double push = 1 + 0x1p-8;
  double bound = push;
  for (const auto& step : schedule) {
    double most = 0;
    for (int i = 1; i <= points; ++i) most = std::max(most, std::abs(apply({step}, bound * i / points)));
    bound = push * most;
    if (!(bound <= 10)) return false;
  }
  return true;
}

Schedule parse_schedule(std::string_view key, std::string_view text) {
  const auto word = trimmed(text);
  for (const auto& known : named_schedules()) {
    if (known.name == word) return known.steps;
  }
  if (word.empty() || word.find_first_of(",;") == std::string_view::npos) refuse_name(key, word);
  auto schedule = parse_list(key, word);
  const auto [least, most] = output_range(schedule);
  if (!(least > 0 && most <= 10)) {
    fail_usage(
        "{}: these {} steps take singular values from 0.01 to 1 to {:.3g} … {:.3g}; they should come near 1: "
        "more than 0, at most 10",
        key, schedule.size(), least, most);
  }
  return schedule;
}

}  // namespace ganymede::newton_schulz
