#pragma once

#include "services/worker/engine/bindings.h"
#include "services/worker/engine/executor/executor.h"

namespace ganymede::worker {

/// dispatch and combine of one row of one layer. Exchange lane only; it computes alone, because the threads belong to
/// the compute lane.
class ExchangeOperations {
 public:
  ExchangeOperations(Workbench& bench, const plan::StepPlan& plan)
      : bench_(bench), plan_(plan), bindings_(bench, plan) {}
  void install(OperationTable& table);

 private:
  void dispatch(const plan::Operation& operation);
  void combine(const plan::Operation& operation);

  Workbench& bench_;
  const plan::StepPlan& plan_;
  Bindings bindings_;
};

}  // namespace ganymede::worker
