#include <algorithm>

#include "common/step_protocol/snapshot_machine.h"
#include "tests/fault/protocol/worker.h"

namespace ganymede::fault {
namespace {

using step_protocol::ExchangeSlot;
using step_protocol::Vote;

// Operations of a generation in their order: the exchange is 0; then per step its gathers, vote, matrices and leaving.
int gather_operation(int step, int bucket) { return step * 16 + bucket; }
int vote_operation(int step) { return step * 16 + 6; }
int matrix_operation(int step) { return step * 16 + 7; }
int leave_operation(int step) { return step * 16 + 8; }

}  // namespace

void Worker::join() const {
  bool newer = state.generation > cell.joined;  // rule 3
  if (configuration.mutation == Mutation::same_generation) newer = state.generation > 0;
  if (!newer) return;
  Cell& next = move("worker: joins");
  next.joined = next.worker_generation = state.generation;
  next.worker = WorkerAt::exchange_publish;
}

void Worker::exchange() const {
  if (cell.worker == WorkerAt::exchange_publish) {
    Cell& next = move("worker: exchange slot");
    next.exchange_generation = next.label_generation = cell.worker_generation;
    next.label_operation = 0;
    next.exchange_committed = static_cast<std::uint8_t>(committed(configuration, cell));
    next.exchange_decided = cell.decided;
    next.exchange_record = record(cell, cell.decided);
    next.worker = WorkerAt::exchange_wait;
    return;
  }
  if (!all_contributed(0)) return;
  std::vector<ExchangeSlot> slots;
  for (int peer = 0; peer < configuration.ranks; ++peer) {
    const Cell& from = state.cells[peer];
    slots.push_back({cell.worker_generation, 0, 1, from.exchange_committed, from.exchange_decided,
                     production_record(from.exchange_record)});
  }
  step_protocol::Resolution result = step_protocol::resolve(slots);
  if (!result.reason.empty()) throw Violation("the exchange cannot go on: " + result.reason);
  Cell& next = move("worker: resolves");
  next.step = static_cast<std::uint8_t>(result.step);
  if (cell.decided + 1u < result.step) {  // this rank lacks the record

    next.pending = state.cells[result.source].exchange_record;
    next.worker = WorkerAt::record_begin;
  } else {
    next_step(next);
    next.worker = serve_again(next, slots) ? WorkerAt::send_publish : next.worker;
  }
}

/// Rule 14: whether a rank has not committed what all have decided, so that it may still need the others' rows.
bool Worker::serve_again(const Cell& next, std::span<const ExchangeSlot> slots) const {
  if (!configuration.matrices || configuration.mutation == Mutation::not_served_again || next.decided == 0)
    return false;
  return std::any_of(slots.begin(), slots.end(), [&](auto& slot) { return slot.committed_step < next.decided; });
}

void Worker::exchange_matrix() const {
  int step = cell.decided;
  if (cell.worker == WorkerAt::send_publish) {
    bool first_phase = cell.epochs[0].chunks_done > (step - 1) * configuration.chunks;
    if (!first_phase && configuration.mutation != Mutation::sent_before_first_phase) return;
    Cell& next = move("worker: sends its rows of the matrix");
    next.label_operation = static_cast<std::uint8_t>(matrix_operation(step));
    next.worker = WorkerAt::send_wait;
    return;
  }
  if (!all_contributed(matrix_operation(step))) return;
  Cell& next = move("worker: orthogonalises the matrix");
  next.worker = WorkerAt::returned_first;
  for (int peer = 0; peer < configuration.ranks; ++peer) {
    for (Content half : state.cells[peer].master[0]) {
      if (half != expected_content(state, step)) throw Violation("rows are sent that are not those of the step");
    }
  }
  if (cell.returned == step) next_step(next);  // served to the others; here it is back already
}

void Worker::return_matrix() const {
  int step = cell.decided;
  bool early = configuration.mutation == Mutation::returned_before_rows;
  if (cell.worker == WorkerAt::returned_word) {
    Cell& next = move("worker: the matrix is back");
    next.returned = static_cast<std::uint8_t>(step);
    next_step(next);
    return;
  }
  int half = cell.worker == WorkerAt::returned_first ? 0 : 1;
  Cell& next = move("worker: half of the matrix comes back");
  next.returned_rows[half] = expected_content(state, step);
  if (early) next.returned = static_cast<std::uint8_t>(step);
  next.worker = half == 0 ? WorkerAt::returned_second : WorkerAt::returned_word;
}

void Worker::next_step(Cell& next) const {
  next.bucket = next.gathered_wrong = next.offered = 0;
  next.pending = {};
  next.step = static_cast<std::uint8_t>(next.decided + 1);
  bool stops = record(next, next.decided).stop_after != 0;
  next.worker = stops ? WorkerAt::leave_publish : WorkerAt::gather_publish;
}

void Worker::gather() const {
  if (cell.worker == WorkerAt::gather_publish) {
    if (cell.copy_ready[cell.bucket] != cell.step - 1) return;
    Cell& next = move("worker: offers its shard");
    next.label_operation = static_cast<std::uint8_t>(gather_operation(cell.step, cell.bucket));
    next.worker = WorkerAt::gather_wait;
    return;
  }
  if (!all_contributed(gather_operation(cell.step, cell.bucket))) return;
  Cell& next = move("worker: gathers");
  Content wanted = expected_content(state, cell.step - 1);
  for (int peer = 0; peer < configuration.ranks; ++peer) {
    for (Content half : state.cells[peer].working[cell.bucket]) next.gathered_wrong |= half != wanted;
  }
  bool more = cell.bucket + 1 < configuration.chunks;
  next.bucket = static_cast<std::uint8_t>(more ? cell.bucket + 1 : 0);
  next.worker = more ? WorkerAt::gather_publish : after_gathers();
}

WorkerAt Worker::after_gathers() const {
  bool swaps = record(cell, cell.decided).swap_change != 0 && configuration.mutation != Mutation::standby_not_awaited;
  return swaps ? WorkerAt::await_standby : WorkerAt::gradient_first;
}

/// swap.h: the gradients of the step before stand until the standby server has followed it, or this rank has refused.
void Worker::await_standby() const {
  std::uint8_t change = record(cell, cell.decided).swap_change;
  if (cell.refused >= change || committed(configuration, cell.epochs[1]) >= cell.decided) {
    move("worker: its standby has followed").worker = WorkerAt::gradient_first;
  } else if (configuration.refusals) {
    move("worker: refuses the swap").refused = change;
  }
}

/// A launcher may prepare another setting before the vote: the worker need not look again (rule 17 lets it).
void Worker::offer() const {
  Cell& next = move("worker: reads what is prepared");
  next.offered = cell.prepared;
  next.worker = WorkerAt::vote_publish;
}

void Worker::require_setting(std::uint64_t number) const {
  if (cell.settings[number % setting_slots] == number) return;
  throw Violation("a rank needs a setting that does not lie whole in its slot");
}

namespace {

/// The decision, as the model keeps it until it is written.
void note(const step_protocol::DecisionRecord& decision, int ranks, Cell& next) {
  next.pending.change = static_cast<std::uint8_t>(decision.change_number);
  next.pending.epoch = static_cast<std::uint8_t>(decision.state_epoch);
  next.pending.swap_change = static_cast<std::uint8_t>(decision.swap_change);
  next.pending.swap_step = static_cast<std::uint8_t>(decision.swap_step);
  next.pending.refused = static_cast<std::uint8_t>(decision.refused_change);
  next.pending.step = static_cast<std::uint8_t>(decision.step);
  next.pending.generation = static_cast<std::uint8_t>(decision.loss_sum / ranks);
  next.pending.stop_after = static_cast<std::uint8_t>(decision.stop_after);
  next.pending.snapshot_after = static_cast<std::uint8_t>(decision.snapshot_after);
  next.pending.snapshot_before = static_cast<std::uint8_t>(decision.snapshot_before);
}

}  // namespace

void Worker::vote_and_decide() const {
  bool idle = !step_protocol::is_armed(cell.snapshot);
  if (cell.worker == WorkerAt::vote_publish) {
    std::uint64_t done = committed(configuration, cell);
    if (configuration.mutation == Mutation::vote_before_commit) done = cell.step - 1;
    auto previous = production_record(record(cell, cell.step - 1));
    if (!step_protocol::may_vote(cell.step, done, idle, previous, policy())) return;
    require_setting(cell.offered);
    Cell& next = move("worker: votes");
    next.vote_change = cell.offered;
    next.label_operation = static_cast<std::uint8_t>(vote_operation(cell.step));
    next.vote_generation = cell.worker_generation;
    next.vote_step = cell.step;
    next.vote_idle = idle;
    next.vote_stop = cell.stop_request;
    next.vote_refused = cell.refused;
    next.vote_previous = record(cell, cell.step - 1);
    next.worker = WorkerAt::vote_wait;
    return;
  }
  if (!all_contributed(vote_operation(cell.step))) return;
  if (cell.gathered_wrong != 0) throw Violation("a step is decided that gathered torn or wrong parameters");
  std::vector<Vote> votes(configuration.ranks);
  for (int peer = 0; peer < configuration.ranks; ++peer) {
    const Cell& from = state.cells[peer];
    bool compared = configuration.mutation != Mutation::generation_not_compared;
    votes[peer].generation = compared ? from.vote_generation : cell.worker_generation;
    votes[peer].step = from.vote_step;
    votes[peer].loss_sum = from.vote_generation;
    votes[peer].loss_tokens = 1;
    votes[peer].snapshot_idle = from.vote_idle;
    votes[peer].stop_request = from.vote_stop;
    votes[peer].previous_record = production_record(from.vote_previous).checksum;
    votes[peer].change_number = from.vote_change;
    votes[peer].refused_change = configuration.mutation == Mutation::refused_alone ? cell.refused : from.vote_refused;
    if (configuration.mutation == Mutation::snapshot_while_busy) votes[peer].snapshot_idle = 1;
  }
  if (configuration.mutation == Mutation::newest_offer_followed) {
    std::uint64_t newest = 0;
    for (const Vote& vote : votes) newest = std::max(newest, vote.change_number);
    for (Vote& vote : votes) vote.change_number = newest;
  }
  step_protocol::DecisionRecord previous = production_record(record(cell, cell.step - 1));
  if (configuration.mutation == Mutation::snapshot_while_busy) previous.snapshot_after = 0;
  std::uint64_t change = step_protocol::decided_change(votes, previous, policy().swap).change_number;
  require_setting(change);
  step_protocol::DecisionRecord decision = step_protocol::decide(votes, previous, policy(change));
  Cell& next = move("worker: decides");
  note(decision, configuration.ranks, next);
  next.worker = WorkerAt::record_begin;
  if (configuration.mutation == Mutation::decided_before_record) next.worker = WorkerAt::decided;
}

void Worker::leave() const {
  int last = cell.decided;
  if (cell.worker == WorkerAt::leave_publish) {
    if (committed(configuration, cell) != last) return;
    Cell& next = move("worker: would leave");
    next.label_operation = static_cast<std::uint8_t>(leave_operation(last));
    next.worker = configuration.mutation == Mutation::leave_alone ? WorkerAt::finished : WorkerAt::leave_wait;
    return;
  }
  if (!all_contributed(leave_operation(last))) return;
  Cell& next = move("worker: leaves");
  next.worker = WorkerAt::finished;
}

void Worker::abort() const {
  if (cell.worker < WorkerAt::exchange_publish || cell.worker > WorkerAt::leave_wait || !attempt_over()) return;
  bool mutated = configuration.mutation == Mutation::late_lane;
  bool stores = cell.worker == WorkerAt::gradient_first || cell.worker == WorkerAt::gradient_second ||
                cell.worker == WorkerAt::decided;
  Cell& next = move("worker: ends the attempt");  // rule 1: its lanes have ended
  if (mutated && stores) {
    next.late = cell.worker;
    next.late_generation = cell.worker_generation;
    next.late_step = cell.step;
    next.late_bucket = cell.bucket;
  }
  next.worker = WorkerAt::joining;
  next.worker_generation = next.step = next.bucket = next.gathered_wrong = next.offered = 0;
  next.pending = {};
}

void worker_moves(const Configuration& configuration, const State& state, int rank, std::vector<Move>& moves) {
  Worker worker{configuration, state, rank, moves};
  worker.late_store();
  worker.abort();
  switch (worker.cell.worker) {
    case WorkerAt::joining:
      return worker.join();
    case WorkerAt::exchange_publish:
    case WorkerAt::exchange_wait:
      return worker.exchange();
    case WorkerAt::gather_publish:
    case WorkerAt::gather_wait:
      return worker.gather();
    case WorkerAt::await_standby:
      return worker.await_standby();
    case WorkerAt::offer:
      return worker.offer();
    case WorkerAt::vote_publish:
    case WorkerAt::vote_wait:
      return worker.vote_and_decide();
    case WorkerAt::send_publish:
    case WorkerAt::send_wait:
      return worker.exchange_matrix();
    case WorkerAt::returned_first:
    case WorkerAt::returned_second:
    case WorkerAt::returned_word:
      return worker.return_matrix();
    case WorkerAt::leave_publish:
    case WorkerAt::leave_wait:
      return worker.leave();
    default:
      return worker.store();
  }
}

}  // namespace ganymede::fault
