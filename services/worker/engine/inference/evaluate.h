#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ganymede::worker {

struct EvaluateOptions {
  std::string folder;
  std::optional<std::uint64_t> step;
  std::string dataset;
  std::string split = "validation";  // or "train"
  std::int64_t rows = 32;
  bool json = false;
};

/// Prints the mean loss (natural log) over rows of a dataset. Throws Error.
void evaluate(const EvaluateOptions& options);

}  // namespace ganymede::worker
