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
  /// On top of all operations of a train plan: the first of two passes of a step, which decides nothing.
  void install_first_pass(OperationTable& table);

 private:
  void wait_batch();
  void await_standby();
  void store_gradients(const plan::Operation& operation);
  void wait_update();
  void await_idle_snapshots();
  void vote();
  void refuse_differences();
  void meet();
  void vote_on_validation();
  void decide();
  step_protocol::Vote own_vote();
  step_protocol::StepPolicy decided_policy(const step_protocol::DecisionRecord& previous) const;
  step_protocol::DecisionRecord previous_record() const;

  Workbench& bench_;
  plan::PlanKind kind_;
};

/// The record of the step before; all zero where the run, or what it goes on from a checkpoint with, begins.
step_protocol::DecisionRecord previous_record(const step_protocol::ControlBlock& block, std::uint64_t step);

/// Completes a record with the hashes of what lies beside it.
void seal(step_protocol::DecisionRecord& record, std::span<const std::int64_t> expert_counts,
          std::span<const EpochReductions> reductions);

/// Writes a decided step for the optimizer servers and everyone else who follows the cell: reductions, counts, record,
/// then `decided_step`.
void publish(const service::Control& control, const step_protocol::DecisionRecord& record,
             std::span<const std::int64_t> expert_counts, std::span<const EpochReductions> reductions);

}  // namespace ganymede::worker
