#include "services/optimizer/selection_bias.h"

#include <cstddef>
#include <numeric>

namespace ganymede::optimizer {

void update_selection_bias(std::span<const std::int64_t> counts, std::int64_t first, double rate,
                           std::span<const float> bias, std::span<float> new_bias) {
  std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  auto experts = static_cast<std::int64_t>(counts.size());
  auto step = static_cast<float>(rate);
  for (std::size_t i = 0; i < bias.size(); i++) {
    std::int64_t scaled = counts[static_cast<std::size_t>(first) + i] * experts;
    int sign = (scaled < total) - (scaled > total);
    new_bias[i] = bias[i] + static_cast<float>(sign) * step;
  }
}

}  // namespace ganymede::optimizer
