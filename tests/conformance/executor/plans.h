#pragma once

#include "common/plan/executor.h"

/// Plans and tables that the tests of executors share.
namespace ganymede::test {

inline plan::StepPlan real_plan(int ranks = 2, double offload = 0.5) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  config.offload.fraction = offload;
  return plan::build(config, placement::build(config, 0), plan::PlanKind::train);
}

/// The same function for every kind.
inline plan::OperationTable all(const plan::OperationFunction& function) {
  plan::OperationTable table;
  table.functions.fill(function);
  return table;
}

}  // namespace ganymede::test
