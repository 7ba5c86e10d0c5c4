#pragma once

#include <cstdint>
#include <span>

#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"

namespace ganymede::optimizer {

/// Writes elements first … first + values.size() - 1 of the master array (of this rank, inside `bucket`) into the
/// working copy, in the bucket's format: fp32 as it is, bf16 to nearest (a NaN stays one). `values` are their new
/// values. The stores bypass the caches and are visible to other threads after `finish_publishing`. Not for fp8
/// buckets. Thread-safe for ranges that do not overlap.
void publish(const CellMemory& memory, const placement::Placement& placement, int bucket, std::int64_t first,
             std::span<const float> values);

/// The same, and brings the values into the master array too.
void update_and_publish(const CellMemory& memory, const placement::Placement& placement, int bucket, std::int64_t first,
                        std::span<const float> values);

/// The same for an fp8 bucket, from the master, which already holds the new values: writes the blocks whose last
/// element is one of them. A run of elements in ascending order so writes each block once, rounded once, whatever
/// the lengths of its parts. Returns what is NaN or infinite; NonFinite::first counts in the master array.
wire::NonFinite publish_blocks(const CellMemory& memory, const placement::Placement& placement, int bucket,
                               std::int64_t first, std::int64_t count);

/// Orders all stores of this thread's `publish` before its later stores.
void finish_publishing();

/// Whether the bucket is published by blocks.
bool by_blocks(const CellMemory& memory, int bucket);

/// Throws Error that names the parameter of the first value that fp8 cannot carry, if there is one.
void refuse_non_finite(const placement::Placement& placement, const wire::NonFinite& found, std::uint64_t step);

}  // namespace ganymede::optimizer
