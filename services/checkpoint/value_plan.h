#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"

namespace ganymede::checkpoint {

/// One value of a part for every slot: consecutive elements of one parameter, read chunk by chunk.
struct PlannedValue {
  int parameter = 0;
  std::int64_t first = 0, count = 0;
  std::vector<int> chunks;  // indices in Placement::chunks, in element order
};

/// All values of a rank's part, at most `most_elements` each (but at least one chunk). Layer after layer, as the
/// update goes, so that the reader keeps ahead of it; inside a layer by name, so that keys ascend and files are few.
std::vector<PlannedValue> plan_values(const placement::Placement& placement, std::int64_t most_elements);

}  // namespace ganymede::checkpoint
