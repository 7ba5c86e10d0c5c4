#include "common/step_protocol/swap.h"

#include <algorithm>

namespace ganymede::step_protocol {
namespace {

/// Nothing new.
SwapDecision as_before(const DecisionRecord& previous) {
  return {.change_number = previous.change_number,
          .state_epoch = previous.state_epoch,
          .swap_change = previous.swap_change,
          .swap_step = previous.swap_step,
          .swap_updates = previous.swap_updates,
          .refused_change = previous.refused_change};
}

void end_swap(SwapDecision& decision) { decision.swap_change = decision.swap_step = decision.swap_updates = 0; }

}  // namespace

bool takes_over_after(const DecisionRecord& record, const SwapPolicy& offer) {
  return record.swap_change != 0 && record.updates >= record.swap_updates + offer.warm_steps;
}

SwapDecision decide_swap(const SwapVotes& votes, const DecisionRecord& previous, const SwapPolicy& offer) {
  SwapDecision decision = as_before(previous);
  if (previous.swap_change != 0) {
    if (votes.refused >= previous.swap_change) {
      decision.refused_change = previous.swap_change;
      end_swap(decision);
    } else if (takes_over_after(previous, offer)) {
      decision.change_number = previous.swap_change;
      decision.state_epoch = offer.state_epoch;
      end_swap(decision);
    }
    return decision;
  }
  if (votes.offered <= std::max(previous.change_number, previous.refused_change)) return decision;
  if (offer.state_epoch == previous.state_epoch) {
    decision.change_number = votes.offered;
  } else if (votes.refused >= votes.offered) {
    decision.refused_change = votes.offered;
  } else {
    decision.swap_change = votes.offered;
    decision.swap_step = votes.step;
  }
  return decision;
}

ServerPart part_of(const DecisionRecord& record, std::uint64_t epoch, std::uint64_t swap_epoch) {
  if (record.state_epoch == epoch) return ServerPart::applies;
  if (record.swap_change == 0 || swap_epoch != epoch) return ServerPart::none;
  return record.step == record.swap_step ? ServerPart::adopt : ServerPart::follow;
}

}  // namespace ganymede::step_protocol
