#pragma once

#include "common/base/exact_sum.h"
#include "common/step_protocol/control_block.h"
#include "common/step_protocol/skip.h"
#include "common/step_protocol/swap.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The worker's half of the protocol: joining a generation, the exchange that decides where to go on, and the vote.
/// Pure functions and plain data: the worker carries the actions out with collectives and shared memory, the crash
/// test with arrays.
namespace ganymede::step_protocol {

/// What a worker brings to the exchange of a generation (rule 8).
struct ExchangeSlot {
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t state_intact = 0;  // 1: all segments of the cell are intact
  std::uint64_t committed_step = 0;
  std::uint64_t decided_step = 0;
  DecisionRecord record;  // of decided_step (all zero when decided_step == load_step)
};

enum class ResolutionKind : std::uint8_t {
  go_on,            // everyone continues with step `step`
  adopt,            // store `record` (and what is beside it from `source`) where it is missing, then go on with `step`
  from_checkpoint,  // states differ or are torn: the job goes back to the last checkpoint
  diverged,         // records of one step differ: stop
};

struct Resolution {
  ResolutionKind kind = ResolutionKind::go_on;
  std::uint64_t step = 0;  // the next step to compute, the same on all ranks
  int source = -1;         // world rank whose record is adopted
  std::string reason;      // for the last two kinds
};

/// The same result on every rank for the same slots (rules 5, 6, 8).
Resolution resolve(std::span<const ExchangeSlot> slots);

/// A rank's contribution to the vote of one step: fixed size, gathered from all ranks.
struct Vote {
  std::uint64_t generation = 0, step = 0;
  double loss_sum = 0;              // of this rank's rows, in row order
  std::uint64_t loss_tokens = 0;    // of the whole step, equal on all ranks
  ExactSum norm_squared;            // of this rank's gradient shards, each shard once
  std::uint64_t non_finite = 0;     // 1: a loss or gradient of this rank is not finite
  std::uint64_t snapshot_idle = 1;  // 1: no snapshot is under way in this cell
  std::uint64_t stop_request = 0;
  std::uint64_t snapshot_request = 0;
  std::uint64_t change_number = 0;    // of the setting that this rank offers
  std::uint64_t refused_change = 0;   // newest swap that its cell cannot follow
  std::uint64_t previous_record = 0;  // checksum of the record of step - 1 (rule 9); 0 right after load_step
  std::uint64_t served_request = 0;
  std::uint64_t replay_difference = 0;  // what came out otherwise in a second pass (check.replay_every); 0: nothing
};

/// What the configuration, and the setting that the step follows, say about step s: the same on all ranks.
struct StepPolicy {
  std::uint64_t change_number = 0;  // whose values the next five are
  double lr = 0, weight_decay = 0, clip_norm = 0;
  std::vector<GroupValues> groups{};  // as in DecisionRecord, ≤ most_update_groups
  std::vector<double> hyper{};        // as in DecisionRecord, ≤ most_hyper_parameters
  std::uint64_t last_step = 0;        // run.steps
  SkipRules skip = {};
  std::uint64_t stop_after_skips = 0;  // in a row; 0: never
  std::uint64_t snapshot_every = 0;    // 0: only at the end
  std::uint64_t optimizer_hash = 0;
  std::uint64_t load_step = 0;
  StepStatistics loaded_statistics = {};  // up to and with load_step
  std::uint64_t loaded_updates = 0;
  SwapPolicy swap = {};
};

/// A worker votes for `step` only when its own cell has committed step - 1 (rule 6), and for a step that ends the
/// run, or with which another optimizer takes over, only when no snapshot is under way in the cell.
bool may_vote(std::uint64_t step, std::uint64_t committed_step, bool snapshot_idle, const DecisionRecord& previous,
              const StepPolicy& policy);

/// What the step of these votes follows: what all ranks offer, else as `previous` (rule 16). `swap`: of the offer of
/// this rank.
SwapDecision decided_change(std::span<const Vote> votes, const DecisionRecord& previous, const SwapPolicy& swap);

/// The record that these votes decide: a pure function, summed in rank order in fp64 (rules 9, 10, 16, 18).
/// `previous` is the record of step - 1 (all zero right after load_step); `policy` is of the decided change. Throws
/// Error when votes are of different steps or generations or when the ranks' previous records differ. Fills all but
/// the hashes of counts and reductions, and the checksum.
DecisionRecord decide(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy);

/// A batch slot may be filled with `step` when what it holds is decided (rule 21).
bool slot_free(std::uint64_t held_step, std::uint64_t decided_step);

}  // namespace ganymede::step_protocol
