#pragma once

#include <cstdint>

#include "common/step_protocol/control_block.h"

/// How a change of the optimizer reaches the steps: a setting of another state epoch (rule 16). It is offered like any
/// change, by a cell in which a standby optimizer server for that epoch runs. Then
///   record t           names it as swap_change (swap_step = t): the standby servers take over what they can of the
///                      state after step t, before any gradient of step t + 1 is written;
///   t + 1, …           it goes on being named: the standby servers follow these steps;
///   the first record after warm_steps updates (of the setting; a skipped step is none) names the new epoch: its
///                      servers are those that apply this step and those after it.
/// A worker's gradients wait for its standby as rule 6 has votes wait for the server. So which steps a swap takes
/// depends on nothing but the step whose record first named it, whoever is killed and comes back meanwhile. Until the
/// new epoch is named, any cell may refuse: then the record of that step, on all ranks, names no swap any more, and
/// whatever was decided before is as if nobody had asked. After a refusal the next change has to be of the epoch in
/// force.
namespace ganymede::step_protocol {

/// What a rank's offered setting says about a swap.
struct SwapPolicy {
  std::uint64_t state_epoch = 0, warm_steps = 0;
};

/// The fields of the same names in a decision record; swap_updates is 0 in the record that first names the swap, until
/// the updates are counted.
struct SwapDecision {
  std::uint64_t change_number = 0, state_epoch = 0;
  std::uint64_t swap_change = 0, swap_step = 0, swap_updates = 0, refused_change = 0;
};

/// What all ranks say together about the change that they offer.
struct SwapVotes {
  std::uint64_t step = 0;
  std::uint64_t offered = 0;  // by all of them; 0: they do not offer the same
  std::uint64_t refused = 0;  // newest that any of them cannot follow
};

/// The step's part of the decision. `offer` is of the setting that this rank offers: where all offer the same, or one
/// is being warmed up, it is the same on all ranks, because a setting stays the prepared one until it is in force or
/// refused.
SwapDecision decide_swap(const SwapVotes& votes, const DecisionRecord& previous, const SwapPolicy& offer);

/// Whether another optimizer takes over with the record after this one, if nobody refuses: a step for which there must
/// be no snapshot under way.
bool takes_over_after(const DecisionRecord& record, const SwapPolicy& offer);

/// What the server of a state epoch does with a step.
enum class ServerPart : std::uint8_t {
  none,     // the step is another server's
  adopt,    // take over what the state in force has after this step
  follow,   // compute the state alone
  applies,  // compute state and parameters
};
ServerPart part_of(const DecisionRecord& record, std::uint64_t epoch, std::uint64_t swap_epoch);

}  // namespace ganymede::step_protocol
