#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ganymede::launcher {

/// The figures of one step that a person watches. What is not known is left out of the line.
struct StepFigures {
  std::uint64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> grad_norm = {}, lr = {};
  std::optional<double> step_seconds = {}, tokens_per_second = {};
  std::optional<double> mfu = {};  // 0 … 1
  struct Memory {
    double used = 0, limit = 0;  // bytes
  };
  std::optional<Memory> memory = {};
  std::optional<double> imbalance = {};  // tokens of the busiest expert over the mean
  std::optional<double> eta_seconds = {};
  bool skipped = false;
};

/// "step 120/2000 | loss 3.281 | norm 1.46 | lr 3.0e-4 | 812 ms | 5,043 tok/s | eta 25 min | mfu 41% | …"
std::string step_line(const StepFigures& figures);

}  // namespace ganymede::launcher
