#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "common/step_protocol/worker_machine.h"
#include "tests/fault/protocol/model.h"

namespace ganymede::fault {

constexpr std::uint64_t warm_steps = 1;

/// The worker of one cell at one state: each function appends the moves that it can make.
struct Worker {
  const Configuration& configuration;
  const State& state;
  int rank;
  std::vector<Move>& moves;
  const Cell& cell = state.cells[rank];

  Cell& move(const char* what) const { return add_move(moves, state, rank, what); }
  const Record& record(const Cell& of, int step) const { return of.records[record_slot(configuration, step)]; }
  step_protocol::StepPolicy policy(std::uint64_t change = 0) const {
    step_protocol::StepPolicy result;
    result.change_number = change;
    result.last_step = configuration.steps;
    result.snapshot_every = configuration.snapshot_every;
    if (configuration.swap)
      result.swap = {static_cast<std::uint64_t>(epoch_of_change(configuration, cell.offered)), warm_steps};
    return result;
  }

  /// Rule 4: whether every member of the generation has contributed to the operation (or a later one).
  bool all_contributed(int operation) const {
    return std::all_of(state.cells, state.cells + configuration.ranks, [&](const Cell& peer) {
      bool same = peer.label_generation == cell.worker_generation ||
                  configuration.mutation == Mutation::generation_not_compared;
      return same && peer.label_operation >= operation;
    });
  }
  /// Whether the attempt may be seen to have ended: a peer is gone or the launcher has announced a new generation.
  bool attempt_over() const {
    if (state.generation > cell.worker_generation) return true;
    return std::any_of(state.cells, state.cells + configuration.ranks, [&](const Cell& peer) {
      return peer.worker == WorkerAt::dead ||
             (peer.worker == WorkerAt::joining && peer.joined >= cell.worker_generation);
    });
  }

  void join() const;
  void exchange() const;
  void gather() const;
  /// What a step does when all is gathered.
  WorkerAt after_gathers() const;
  void await_standby() const;
  void store_gradient(Cell& next, WorkerAt at, int generation, int step, int bucket) const;
  void offer() const;
  void require_setting(std::uint64_t number) const;
  void vote_and_decide() const;
  void store_decided(State& next_state, const Record& decided) const;
  void next_step(Cell& next) const;
  bool serve_again(const Cell& next, std::span<const step_protocol::ExchangeSlot> slots) const;
  void leave() const;
  /// After a decision: what a whole matrix needs of all ranks, between the two phases of their optimizer servers.
  void exchange_matrix() const;
  void return_matrix() const;
  void abort() const;
  void late_store() const;
  /// The stores that wait for nobody.
  void store() const;
};

}  // namespace ganymede::fault
