#include "common/step_protocol/worker_machine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/error.h"

namespace ganymede::step_protocol {
namespace {

bool has_record(const ExchangeSlot& slot) { return slot.record.step != 0 || slot.record.checksum != 0; }

Resolution cannot_go_on(ResolutionKind kind, std::string reason) {
  return {.kind = kind, .step = 0, .source = -1, .reason = std::move(reason)};
}

Resolution from_checkpoint(std::string reason) {
  return cannot_go_on(ResolutionKind::from_checkpoint, std::move(reason));
}

/// Rules 6 and 8: whether the cells hold one state; else why not.
std::string why_not_one_state(std::span<const ExchangeSlot> slots) {
  std::uint64_t most_decided = 0, least_committed = never;
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    const ExchangeSlot& slot = slots[rank];
    if (slot.state_intact == 0) return fmt::format("the segments of rank {} are not intact", rank);
    if (slot.incarnation != slots[0].incarnation) {
      return fmt::format("rank {} holds incarnation {} of the state and rank 0 holds {}", rank, slot.incarnation,
                         slots[0].incarnation);
    }
    if (slot.committed_step > slot.decided_step) {
      return fmt::format("rank {} committed step {} but decided only {}", rank, slot.committed_step, slot.decided_step);
    }
    most_decided = std::max(most_decided, slot.decided_step);
    least_committed = std::min(least_committed, slot.committed_step);
  }
  if (most_decided > least_committed + 1) {
    return fmt::format("step {} is decided on a rank and only step {} is committed on another", most_decided,
                       least_committed);
  }
  return {};
}

/// The lowest rank that decided `step`.
int first_with(std::span<const ExchangeSlot> slots, std::uint64_t step) {
  auto found = std::find_if(slots.begin(), slots.end(), [&](auto& slot) { return slot.decided_step == step; });
  return static_cast<int>(found - slots.begin());
}

void check_votes(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy) {
  if (votes.empty()) fail("a step cannot be decided without votes");
  const Vote& first = votes[0];
  std::uint64_t before = previous.step == 0 ? policy.load_step : previous.step;
  if (first.step != before + 1) fail("the vote is of step {} but the step after {} is due", first.step, before);
  for (std::size_t rank = 0; rank < votes.size(); ++rank) {
    const Vote& vote = votes[rank];
    if (vote.step != first.step || vote.generation != first.generation) {  // rule 4
      fail("rank {} votes for step {} in generation {} and rank 0 for step {} in generation {}", rank, vote.step,
           vote.generation, first.step, first.generation);
    }
    if (vote.previous_record != previous.checksum) {  // rule 9
      fail("rank {} decided step {} otherwise than this rank (records {:016x} and {:016x}); the ranks have diverged",
           rank, before, vote.previous_record, previous.checksum);
    }
    if (vote.loss_tokens != first.loss_tokens) {
      fail("rank {} counts {} loss tokens in step {} and rank 0 counts {}; the ranks read different data", rank,
           vote.loss_tokens, vote.step, first.loss_tokens);
    }
  }
}

/// Loss and norm (rule 10: sums in rank order).
VoteSum sum_up(std::span<const Vote> votes, DecisionRecord& record) {
  ExactSum norm_squared;
  bool finite = true;
  for (const Vote& vote : votes) {
    record.loss_sum += vote.loss_sum;
    norm_squared.merge(vote.norm_squared);
    finite = finite && vote.non_finite == 0;
  }
  record.loss_tokens = votes[0].loss_tokens;
  record.grad_norm = std::sqrt(norm_squared.value());
  return {finite, record.loss_sum / static_cast<double>(record.loss_tokens), record.grad_norm};
}

/// Whether the step is applied, and with which clip factor.
void decide_update(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy,
                   DecisionRecord& record) {
  VoteSum step = sum_up(votes, record);
  const StepStatistics& before = previous.step == 0 ? policy.loaded_statistics : previous.statistics;
  SkipReason reason = why_skipped(step, before, static_cast<SkipReason>(previous.skip_reason), policy.skip);
  record.skip_reason = static_cast<std::uint64_t>(reason);
  record.apply = reason == SkipReason::none;
  if (policy.skip.listed) {  // nobody computed them
    record.loss_sum = std::numeric_limits<double>::quiet_NaN();
    record.grad_norm = std::numeric_limits<double>::quiet_NaN();
  }
  bool wanted = reason == SkipReason::listed;  // says nothing about how the run is doing
  record.skipped_in_row = record.apply != 0 ? 0 : previous.skipped_in_row + (wanted ? 0 : 1);
  record.updates = (previous.step == 0 ? policy.loaded_updates : previous.updates) + record.apply;
  if (record.swap_change != previous.swap_change && record.swap_change != 0) record.swap_updates = record.updates;
  record.statistics =
      record.apply != 0 ? with_step(before, step.loss, step.grad_norm, policy.skip.outlier_window) : before;
  if (record.apply != 0 && policy.clip_norm > 0) {  // as torch.nn.utils.clip_grad_norm_
    record.clip_factor = std::min(1.0, policy.clip_norm / (record.grad_norm + 1e-6));
  }
}

/// Which setting and which optimizer the step follows (rule 16).
void decide_change(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy,
                   DecisionRecord& record) {
  SwapDecision decision = decided_change(votes, previous, policy.swap);
  if (policy.change_number != decision.change_number)
    impossible(__FILE__, __LINE__, "a step would follow another setting than the one that it decided");
  record.change_number = decision.change_number;
  record.change_step = decision.change_number != previous.change_number ? record.step : previous.change_step;
  record.state_epoch = decision.state_epoch;
  record.swap_change = decision.swap_change;
  record.swap_step = decision.swap_step;
  record.swap_updates = decision.swap_updates;
  record.refused_change = decision.refused_change;
}

/// Stop and snapshot (rules 7 and 18). A stop implies a snapshot, so it waits until one can be ordered; a person's
/// request stays pending; a periodic one that falls into another is left out. The step before the last orders none,
/// so that the last one can, nor does the one before another optimizer takes over: the snapshot of a state is done
/// before other chunks overwrite it.
void decide_ending(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy,
                   DecisionRecord& record) {
  bool idle = previous.snapshot_after == 0;
  bool stop = record.step == policy.last_step;
  stop = stop || ends_run(static_cast<SkipReason>(record.skip_reason), policy.skip);
  stop = stop || (policy.stop_after_skips > 0 && record.skipped_in_row >= policy.stop_after_skips);
  std::uint64_t requested = 0, served = 0;
  for (const Vote& vote : votes) {
    idle = idle && vote.snapshot_idle != 0;
    stop = stop || vote.stop_request != 0;
    requested = std::max(requested, vote.snapshot_request);
    served = std::max(served, vote.served_request);
  }
  if (!idle && (record.step == policy.last_step || record.state_epoch != previous.state_epoch)) {
    fail("a rank voted for step {}, the last one of the run or of an optimizer, while a snapshot was under way",
         record.step);
  }
  bool due = policy.snapshot_every > 0 && record.step % policy.snapshot_every == 0;
  bool next_takes_over = takes_over_after(record, policy.swap);
  bool intermediate = (due || requested > served) && record.step + 1 != policy.last_step && !next_takes_over;
  record.stop_after = stop && idle;
  record.snapshot_after = idle && (stop || intermediate);
  record.snapshot_before = previous.snapshot_after;
}

}  // namespace

Resolution resolve(std::span<const ExchangeSlot> slots) {
  if (slots.empty()) fail("an exchange needs at least one rank");
  std::uint64_t decided = 0;
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    if (slots[rank].generation != slots[0].generation) {  // rule 4
      return {.kind = ResolutionKind::diverged,
              .reason = fmt::format("rank {} exchanges in generation {} and rank 0 in {}", rank, slots[rank].generation,
                                    slots[0].generation)};
    }
    decided = std::max(decided, slots[rank].decided_step);
  }
  if (std::string reason = why_not_one_state(slots); !reason.empty()) return from_checkpoint(std::move(reason));

  Resolution result;
  result.step = decided + 1;
  int source = first_with(slots, decided);
  const ExchangeSlot& newest = slots[source];
  if (has_record(newest) && (newest.record.step != decided || !newest.record.intact())) {
    return from_checkpoint(fmt::format("the record of step {} on rank {} is damaged", decided, source));
  }
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    if (slots[rank].decided_step != decided) {  // rule 5: a decided step is adopted, nothing else leads to one
      result.kind = ResolutionKind::adopt;
      result.source = source;
    } else if (slots[rank].record.checksum != newest.record.checksum || has_record(slots[rank]) != has_record(newest)) {
      return cannot_go_on(ResolutionKind::diverged,
                          fmt::format("ranks {} and {} decided step {} differently", source, rank, decided));
    }
  }
  if (result.kind == ResolutionKind::adopt && !has_record(newest)) {
    return from_checkpoint(fmt::format("rank {} decided step {} but has no record of it", source, decided));
  }
  return result;
}

bool may_vote(std::uint64_t step, std::uint64_t committed_step, bool snapshot_idle, const DecisionRecord& previous,
              const StepPolicy& policy) {
  bool needs_idle = step == policy.last_step || takes_over_after(previous, policy.swap);
  return committed_step + 1 >= step && (!needs_idle || snapshot_idle);
}

SwapDecision decided_change(std::span<const Vote> votes, const DecisionRecord& previous, const SwapPolicy& swap) {
  if (votes.empty()) fail("a step cannot be decided without votes");
  SwapVotes together{.step = votes[0].step, .offered = votes[0].change_number, .refused = 0};
  for (const Vote& vote : votes) {
    if (vote.change_number != together.offered) together.offered = 0;
    together.refused = std::max(together.refused, vote.refused_change);
  }
  return decide_swap(together, previous, swap);
}

DecisionRecord decide(std::span<const Vote> votes, const DecisionRecord& previous, const StepPolicy& policy) {
  check_votes(votes, previous, policy);
  DecisionRecord record;
  record.step = votes[0].step;
  record.lr = policy.lr;
  record.weight_decay = policy.weight_decay;
  if (policy.hyper.size() > most_hyper_parameters || policy.groups.size() > most_update_groups)
    impossible(__FILE__, __LINE__, "more hyper-parameters or groups than a record");
  record.group_count = policy.groups.size();
  std::copy(policy.groups.begin(), policy.groups.end(), record.groups);
  record.hyper_count = policy.hyper.size();
  std::copy(policy.hyper.begin(), policy.hyper.end(), record.hyper);
  record.optimizer_hash = policy.optimizer_hash;
  decide_change(votes, previous, policy, record);
  decide_update(votes, previous, policy, record);
  decide_ending(votes, previous, policy, record);
  return record;
}

bool slot_free(std::uint64_t held_step, std::uint64_t decided_step) {
  return held_step == never || decided_step >= held_step;
}

}  // namespace ganymede::step_protocol
