#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::config {

/// Steps from `first` up to and with `last`, from 1 on.
struct StepRange {
  std::uint64_t first = 0, last = 0;
};

/// "120-135", or "400" for one step alone; nothing for any other text.
std::optional<StepRange> read_step_range(const std::string& text);

/// Whether one of the texts (run.skip_steps) names the step; a text that is no range names none.
bool lists_step(const std::vector<std::string>& ranges, std::uint64_t step);

/// Of `now` those that name a step up to `done` and are not in `before`: too late for that step. "120-135, 400"; empty:
/// none.
std::string too_late(const std::vector<std::string>& before, const std::vector<std::string>& now, std::uint64_t done);

}  // namespace ganymede::config
