#pragma once

#include <limits>
#include <memory>

#include "services/worker/engine/communicators.h"
#include "services/worker/engine/executor/executor.h"
#include "services/worker/engine/surroundings.h"

/// The training engine of one rank: plans, memory and operations of the steps of one generation and one state epoch.
namespace ganymede::worker {

struct StepResult {
  step_protocol::DecisionRecord record;
  std::uint64_t tokens = 0;  // that the model saw in this step, all ranks; of one that is left out none
  double wall_ms = 0;
  double replay_ms = 0;  // of that, the first of two passes (check.replay_every); 0: there was one
  std::array<LaneUse, plan::lane_count> lanes{};
  std::array<double, wait_kinds> waits_ms{};
  double exposed_communication_ms = 0;  // something was transferred and nothing was computed
  double update_exposed_ms = 0;         // only the update of the step before was waited for
  double attention_logit_max = std::numeric_limits<double>::quiet_NaN();  // NaN: no optimizer asks for it
  double imbalance = 0;                  // max over layers of (most tokens of an expert / mean); 0 without experts
  std::int64_t exchange_rows = 0;        // most rows that a dispatch brought to this rank, its own among them
  std::int64_t exchange_rows_limit = 0;  // that there is room for; 0: nothing travels
  std::int64_t predicted_peak = 0, measured_peak = 0, pool_bytes = 0, arena_bytes = 0;  // bytes
  std::int64_t rotary_bytes = 0;                                                        // tables of rotations
};

/// One thread calls it; `cancel` may come from any.
class Engine {
 public:
  /// Of the state epoch in force, to which the communicators belong. `context` and `communicators` must outlive it.
  /// Throws Error when plan and segments do not fit.
  Engine(service::Context& context, Communicators& communicators, std::uint64_t generation,
         std::uint64_t optimizer_hash);
  ~Engine();

  /// Computes step `step` from the working copy of step - 1 and publishes its decision in the cell. Where that names
  /// another state epoch, the update is not this engine's any more, nor is any step after it. When it throws,
  /// no lane is inside the step any more. Of a step that run.skip_steps names nothing is computed, and its decision is
  /// that nothing is applied. Throws OperationFailed, Cancelled; so also, on all ranks, for a step that is computed
  /// twice (check.replay_every) and comes out differently on one of them: it is not decided.
  StepResult train(std::uint64_t step);
  /// Does again, on all ranks, what a decided step has after its decision, so that those can commit it that have not:
  /// brings matrices together and back (rule 14). Throws like `train`.
  void finish_update(std::uint64_t step);
  /// Mean loss over the held-out rows of all ranks with the working copy of `step`. Throws like `train`.
  double validate(std::uint64_t step);

  /// Ends what runs, and all that comes. Thread-safe.
  void cancel(const std::string& why);

 private:
  StepResult leave_out(std::uint64_t step);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ganymede::worker
