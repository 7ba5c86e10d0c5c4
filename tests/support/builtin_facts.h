#pragma once

#include <vector>

#include "common/placement/update_groups.h"

namespace ganymede {

/// What the built-in optimizers say of themselves, for tests that do not load them.
inline std::vector<placement::OptimizerFacts> builtin_facts() {
  return {{"adamw", {"first_moment", "second_moment"}, false},
          {"lion", {"momentum"}, false},
          {"muon", {"momentum"}, true},
          {"normuon", {"momentum", "row_second_moment"}, true, {"row_second_moment"}, true},
          {"muonclip", {"momentum"}, true, {}, false, {"attention_logit"}},
          {"sgd", {"momentum"}, false}};
}

}  // namespace ganymede
