#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/collectives/collectives.h"
#include "common/placement/reductions.h"
#include "common/service/service.h"
#include "services/worker/engine/surroundings.h"

/// What optimizers ask to know of a whole step before it is applied (placement/reductions.h): this rank's part of it,
/// and how it becomes that of all ranks, with the vote.
namespace ganymede::worker {

/// Of one state epoch. Views of the context's cell: valid until the context releases the epoch.
struct EpochReductions {
  std::uint64_t epoch = 0;
  const placement::Reductions* layout = nullptr;
  std::span<double> shared;    // where the epoch's optimizer server reads them
  std::vector<double> values;  // [Reductions::elements]
};

/// Those that the epochs need which apply or follow the record's step; without values. Epochs that ask for nothing are
/// left out.
std::vector<EpochReductions> reductions_under(service::Context& context, const step_protocol::DecisionRecord& record);

/// Of all heads and ranks in the newest decided step, which is the record's; NaN: nobody asks, or one is not finite.
double largest_logit(service::Context& context, const step_protocol::DecisionRecord& record);

struct StepReductions {
  std::vector<EpochReductions> epochs;  // the one in force, and one that is warmed up
  std::vector<float> logits;            // [layers · heads], of this rank's rows; empty: nobody asks
  std::vector<double> squares;          // [parameters], of this rank's shards; empty: nobody asks

  /// Where a forward of the layer puts its largest logits; null: nobody asks.
  float* logits_of(int layer, int heads);
  bool has_non_finite_logit() const;
  /// Fills `values` with those of all ranks: maxima, and sums in fp64 in rank order, the same bits everywhere. All
  /// ranks of `control` call it alike. Throws CollectiveError.
  void reduce(collectives::Communicator& control, Surroundings& surroundings);
};

/// Of the step after `previous` with the optimizer of `epoch`, before any of it is computed. An epoch that `previous`
/// warms up follows the step, or takes over with it: it is served as well.
StepReductions reductions_of_step(service::Context& context, std::uint64_t epoch,
                                  const step_protocol::DecisionRecord& previous);

}  // namespace ganymede::worker
