#pragma once

#include <vector>

#include "common/placement/update_groups.h"

namespace ganymede {

/// What AdamW's plugin says of itself, for tests that do not load it.
inline std::vector<placement::OptimizerFacts> adamw_facts() {
  return {{"adamw", {"first_moment", "second_moment"}, false}};
}

}  // namespace ganymede
