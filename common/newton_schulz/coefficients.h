#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Coefficient schedules of the Newton–Schulz iteration as data. A step with (a, b, c) takes each singular value s to
/// a·s + b·s³ + c·s⁵; a schedule is one triple a step.
namespace ganymede::newton_schulz {

struct Coefficients {
  double a = 0, b = 0, c = 0;
  bool operator==(const Coefficients&) const = default;
};

using Schedule = std::vector<Coefficients>;

/// Most steps that a list may have (torch.optim.Muon has the same bound).
constexpr int most_steps = 99;

struct NamedSchedule {
  std::string name;
  Schedule steps;
};

/// The published ones, in the order of the documentation. Lives as long as the program; any thread.
const std::vector<NamedSchedule>& named_schedules();

/// What a schedule makes of one singular value.
double apply(const Schedule& schedule, double singular_value);

/// Smallest and largest value that it makes of singular values in [.01, 1], over a grid of 10,000 of them.
std::pair<double, double> output_range(const Schedule& schedule);

/// Whether the iteration stays bounded in bf16, where each step may push the singular values up by a factor of 1 + 2⁻⁸:
/// no step's output may then exceed 10. cans5 does not; in bf16 it takes a matrix of rank 1 to 1e11.
bool withstands_bf16(const Schedule& schedule);

/// A name ("polar_express5") or a list of triples ("3.4445,-4.775,2.0315; 2,-1.5,0.5"; spaces are free). `key` is named
/// in the error. Throws a usage Error with one sentence for an unknown name, anything that is not three numbers, more
/// than `most_steps` triples, or a list that takes singular values in [.01, 1] to zero, below it, or above 10.
Schedule parse_schedule(std::string_view key, std::string_view text);

}  // namespace ganymede::newton_schulz
