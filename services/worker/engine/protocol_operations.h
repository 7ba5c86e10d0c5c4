#pragma once

#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/workbench.h"

namespace ganymede::worker {

/// wait_batch, store_gradients, accumulate_norm, wait_update, vote and decide: the host lane's side of the step
/// protocol.
class ProtocolOperations {
 public:
  ProtocolOperations(Workbench& bench, plan::PlanKind kind) : bench_(bench), kind_(kind) {}
  void install(OperationTable& table);

 private:
  void wait_batch();
  void await_standby();
  void store_gradients(const plan::Operation& operation);
  void wait_update();
  void await_idle_snapshots();
  void vote();
  void vote_on_validation();
  void decide();
  step_protocol::Vote own_vote();
  step_protocol::StepPolicy decided_policy(const step_protocol::DecisionRecord& previous) const;
  step_protocol::DecisionRecord previous_record() const;

  Workbench& bench_;
  plan::PlanKind kind_;
};

/// Writes a decided step for the optimizer server and everyone else who follows the cell: counts, record, then
/// `decided_step`.
void publish(const service::Control& control, const step_protocol::DecisionRecord& record,
             std::span<const std::int64_t> expert_counts);

}  // namespace ganymede::worker
