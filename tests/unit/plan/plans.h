#pragma once

#include <vector>

#include "common/plan/plan.h"

/// Plans that the tests of the plan's choices share.
namespace ganymede::plan {

inline config::Config base(int ranks = 4, int per_node = 2) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.topology.ranks_per_node = per_node;
  config.model.layers = 4;
  config.data.rows_per_step = 12;
  config.data.seq_len = 32;
  return config;
}

/// Three layers on two ranks of one node.
inline config::Config small() {
  config::Config config;
  config.parallel.ranks = 2;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  return config;
}

inline StepPlan train(const config::Config& config, int rank = 0) {
  return build(config, placement::build(config, rank), PlanKind::train);
}

inline std::vector<int> of_kind(const StepPlan& plan, OperationKind kind) {
  std::vector<int> found;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].kind == kind) found.push_back(static_cast<int>(i));
  }
  return found;
}

inline int count(const StepPlan& plan, OperationKind kind) { return static_cast<int>(of_kind(plan, kind).size()); }

}  // namespace ganymede::plan
