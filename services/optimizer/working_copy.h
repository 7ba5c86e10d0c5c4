#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/config/config.h"

namespace ganymede::optimizer {

/// Writes the wire format of `values` to elements first … of `working`: fp32 as it is, bf16 rounded to nearest, ties
/// to even (a NaN stays one). The stores bypass the caches and are visible to other threads after `finish_publishing`.
/// Thread-safe for ranges that do not overlap.
void publish(std::span<const float> values, std::span<std::byte> working, std::int64_t first, config::Dtype dtype);

/// Orders all stores of this thread's `publish` before its later stores.
void finish_publishing();

}  // namespace ganymede::optimizer
