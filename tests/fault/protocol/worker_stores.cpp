#include <algorithm>

#include "tests/fault/protocol/worker.h"

namespace ganymede::fault {

void Worker::store_gradient(Cell& next, WorkerAt at, int generation, int step, int bucket) const {
  next.gradient[bucket][at == WorkerAt::gradient_first ? 0 : 1] = static_cast<std::uint8_t>(generation * 16 + step);
}

/// The invariants that every decided step must keep.
void Worker::store_decided(State& next_state, const Record& decided) const {
  next_state.cells[rank].decided = decided.step;
  Record& first = next_state.history[decided.step];
  if (first.step == 0) first = decided;
  if (first != decided) throw Violation("two ranks took different records for one step");
  int newest = 0, oldest = max_steps;
  for (int peer = 0; peer < configuration.ranks; ++peer) {
    newest = std::max<int>(newest, next_state.cells[peer].decided);
    oldest = std::min(oldest, committed(configuration, next_state.cells[peer]));
  }
  if (newest > oldest + 1) throw Violation("a step is decided two steps ahead of a committed one (rule 6)");
}

void Worker::late_store() const {
  if (cell.late == WorkerAt::dead) return;
  Cell& next = move("late lane: stores");
  if (cell.late == WorkerAt::decided) {
    store_decided(moves.back().state, record(cell, cell.late_step));
  } else {
    store_gradient(next, cell.late, cell.late_generation, cell.late_step, cell.late_bucket);
  }
  next.late = WorkerAt::dead;
  next.late_generation = next.late_step = next.late_bucket = 0;
}

void Worker::store() const {
  bool swapped = configuration.mutation == Mutation::decided_before_record;
  switch (cell.worker) {
    case WorkerAt::gradient_first: {
      Cell& next = move("worker: first half of a gradient");
      store_gradient(next, cell.worker, cell.worker_generation, cell.step, cell.bucket);
      next.worker = WorkerAt::gradient_second;
      return;
    }
    case WorkerAt::gradient_second: {
      Cell& next = move("worker: second half of a gradient");
      store_gradient(next, cell.worker, cell.worker_generation, cell.step, cell.bucket);
      bool more = cell.bucket + 1 < configuration.chunks;
      next.bucket = static_cast<std::uint8_t>(more ? cell.bucket + 1 : 0);
      WorkerAt vote = configuration.changes > 0 ? WorkerAt::offer : WorkerAt::vote_publish;
      next.worker = more ? WorkerAt::gradient_first : vote;
      return;
    }
    case WorkerAt::record_begin: {
      Cell& next = move("worker: half of the record");
      Record torn;
      torn.step = torn_record;
      next.records[record_slot(configuration, cell.pending.step)] = torn;
      next.worker = WorkerAt::record_end;
      return;
    }
    case WorkerAt::record_end: {
      Cell& next = move("worker: the whole record");
      next.records[record_slot(configuration, cell.pending.step)] = cell.pending;
      next.worker = WorkerAt::decided;
      if (swapped) next_step(next);
      return;
    }
    case WorkerAt::decided: {
      Cell& next = move("worker: decided_step");
      store_decided(moves.back().state, cell.pending);
      if (swapped) {
        next.worker = WorkerAt::record_begin;
      } else {
        next_step(next);
        if (configuration.matrices) next.worker = WorkerAt::send_publish;
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace ganymede::fault
