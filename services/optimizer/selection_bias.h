#pragma once

#include <cstdint>
#include <span>

namespace ganymede::optimizer {

/// The router's selection bias after a step: b + rate · sign(mean(counts) − count), for experts first … first +
/// bias.size() - 1. `counts`: tokens that chose each expert of the layer, over the whole step. The mean is compared
/// as a ratio of integers, so the result is exact whatever the counts.
void update_selection_bias(std::span<const std::int64_t> counts, std::int64_t first, double rate,
                           std::span<const float> bias, std::span<float> new_bias);

}  // namespace ganymede::optimizer
