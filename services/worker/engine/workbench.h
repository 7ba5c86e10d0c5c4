#pragma once

#include <cstdint>
#include <vector>

#include "common/base/exact_sum.h"
#include "common/plan/plan.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/worker_machine.h"
#include "services/worker/engine/cell.h"
#include "services/worker/engine/communicators.h"
#include "services/worker/engine/expert_exchange.h"
#include "services/worker/engine/reductions.h"
#include "services/worker/engine/replay.h"
#include "services/worker/engine/surroundings.h"
#include "services/worker/model/expert_dispatch.h"

/// What the operations of one engine work on. Which operation may touch what, and when, follows from the plan's
/// dependencies; nothing here is locked.
namespace ganymede::worker {

/// The pass that is under way. Set by the engine before it runs the plan, filled by the operations.
struct PassState {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint64_t parameters_of = 0;  // step whose working copy is gathered
  Batches* batches = nullptr;
  int slot = 0;
  step_protocol::StepPolicy policy;  // without what the setting of the step says

  std::vector<model::Row> rows;
  std::uint64_t loss_tokens = 0;            // of the whole pass, all ranks
  std::vector<double> row_loss;             // sums over the loss tokens of each row
  ExactSum norm_squared;                    // of this rank's gradient shards
  std::vector<std::int64_t> expert_counts;  // [MoE layers · experts]
  StepReductions reductions;                // that optimizers ask for
  std::vector<model::Dispatch> dispatched;  // by row: where its tokens went, of the layer that it is in
  std::int64_t exchange_rows = 0;           // most rows that a dispatch has brought here
  step_protocol::Setting offered;           // what this rank votes for
  std::vector<step_protocol::Vote> votes;
  step_protocol::DecisionRecord record;
  double loss = 0;                  // validation: mean over all ranks
  PassHashes hashes, first_hashes;  // of this pass and of the one before it, where the step is computed twice
};

struct Workbench {
  const config::Config& config;
  const placement::Placement& placement;
  const model_spec::ModelSpec& spec;
  Cell cell;
  Surroundings& surroundings;
  Communicators& communicators;
  std::byte* pool;
  model::RotaryTables& rotary;
  model::ExpertExchange* exchange;  // null when this rank is alone in its expert group
  PassState pass;
};

/// The buffer of this kind that the operation takes, uses or frees, for a bucket or a layer (-1: any); -1: none.
int find_buffer(const plan::StepPlan& plan, const plan::Operation& operation, plan::BufferKind kind, int bucket,
                int layer);

/// Index of the first count of a layer in `expert_counts`; -1 for a dense layer.
std::int64_t first_count(const model_spec::ModelSpec& spec, int layer);

at::ScalarType scalar_type(config::Dtype dtype);

}  // namespace ganymede::worker
