#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"

namespace ganymede::checkpoint {

/// One value of a part for every slot of its optimizer: consecutive elements of one parameter, read chunk by chunk.
struct PlannedValue {
  int parameter = 0;
  std::int64_t first = 0, count = 0;
  std::vector<int> chunks;          // indices in Placement::chunks, in element order
  std::vector<int> state_chunks{};  // of matrices: the same elements in the phase that updates the state; else empty
};

/// Whether a chunk is in this rank's part of a checkpoint: gaps are not stored, and of what several replicas hold each
/// stores its slice.
bool is_stored(const placement::Placement& placement, const placement::Chunk& chunk);

/// All values of a rank's part, at most `most_elements` each (but at least one chunk). Layer after layer, as the
/// update goes, so that the reader keeps ahead of it; inside a layer by name, so that keys ascend and files are few.
std::vector<PlannedValue> plan_values(const placement::Placement& placement, std::int64_t most_elements);

}  // namespace ganymede::checkpoint
