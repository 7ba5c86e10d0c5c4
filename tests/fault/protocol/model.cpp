#include "tests/fault/protocol/model.h"

#include <type_traits>

#include "common/step_protocol/update_machine.h"

namespace ganymede::fault {

// States are compared and hashed by their bytes.
static_assert(std::has_unique_object_representations_v<State>);

State first_state(const Configuration& configuration) {
  State state{};
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    state.cells[rank].epochs[0].alive = 1;
    state.cells[rank].epochs[1].alive = configuration.swap ? 1 : 0;
  }
  return state;
}

int committed(const Configuration& configuration, const Epoch& epoch) {
  return static_cast<int>(step_protocol::committed_step(epoch.chunks_done, configuration.chunks));
}

int epoch_in_force(const Configuration& configuration, const Cell& cell) {
  return cell.records[record_slot(configuration, cell.decided)].epoch;
}

int committed(const Configuration& configuration, const Cell& cell) {
  return committed(configuration, cell.epochs[epoch_in_force(configuration, cell)]);
}

int epoch_of_change(const Configuration& configuration, int change) {
  return configuration.swap && change == 1 ? 1 : 0;
}

Content expected_content(const State& state, int step) {
  unsigned content = 0;
  for (int done = 1; done <= step; ++done) content |= unsigned{state.history[done].generation} << (4 * (done - 1));
  return static_cast<Content>(content);
}

int record_slot(const Configuration& configuration, int step) {
  return configuration.mutation == Mutation::one_record_slot ? 0 : step % 2;
}

step_protocol::DecisionRecord production_record(const Record& record) {
  step_protocol::DecisionRecord result;
  result.step = record.step;
  result.loss_sum = record.generation;
  result.stop_after = record.stop_after;
  result.snapshot_after = record.snapshot_after;
  result.snapshot_before = record.snapshot_before;
  result.change_number = record.change;
  result.state_epoch = record.epoch;
  result.updates = record.step;
  result.swap_change = record.swap_change;
  result.swap_step = result.swap_updates = record.swap_step;
  result.refused_change = record.refused;
  if (record.step != 0) result.checksum = result.compute_checksum() + (record.step == torn_record ? 1 : 0);
  return result;
}

Cell& add_move(std::vector<Move>& moves, const State& state, int rank, const char* what) {
  moves.push_back({what, static_cast<std::uint8_t>(rank), state});
  return moves.back().state.cells[rank];
}

bool holds_nothing(const Epoch& server) {
  for (int strip = 0; strip < max_strips; ++strip) {
    if (server.stage[strip] != 0 || server.part[strip] != 0) return false;
  }
  return server.adopted == 0;
}

/// A person orders the next change; the launchers prepare it, cell by cell, and go on wherever they were killed.
void change_moves(const Configuration& configuration, const State& state, std::vector<Move>& moves) {
  bool in_force = configuration.mutation == Mutation::next_change_at_once;
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    in_force = in_force || cell.records[record_slot(configuration, cell.decided)].change == state.ordered;
  }
  if (in_force && state.ordered < configuration.changes) {
    add_move(moves, state, 0, "person: a change");
    ++moves.back().state.ordered;
  }
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    std::uint8_t slot = cell.settings[state.ordered % setting_slots];
    bool early = configuration.mutation == Mutation::prepared_before_setting;
    if (cell.prepared < state.ordered && (slot == state.ordered || early)) {
      add_move(moves, state, rank, "launcher: prepared_change").prepared = state.ordered;
    } else if (slot != state.ordered && (cell.prepared < state.ordered || early)) {
      bool torn = slot == torn_setting;
      Cell& next = add_move(moves, state, rank, torn ? "launcher: the whole setting" : "launcher: half of a setting");
      next.settings[state.ordered % setting_slots] = torn ? state.ordered : torn_setting;
    }
  }
}

void launcher_moves(const Configuration& configuration, const State& state, std::vector<Move>& moves) {
  bool all_alive = true, any_finished = false;
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    all_alive = all_alive && cell.worker != WorkerAt::dead;
    any_finished = any_finished || cell.worker == WorkerAt::finished;
  }
  if (state.generation_due != 0 && all_alive && !any_finished) {
    add_move(moves, state, 0, "launcher: next generation");
    ++moves.back().state.generation;
    moves.back().state.generation_due = 0;
  }
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    if (any_finished && cell.worker != WorkerAt::finished) {
      // A worker that left proves that all ranks have committed the last step (rule 7), so the others are told to
      // finish wherever they are: one that was killed just now would wait for the exchange of a generation that the
      // leaver never joins.
      add_move(moves, state, rank, "launcher: finish").worker = WorkerAt::finished;
    } else if (cell.worker == WorkerAt::dead) {
      add_move(moves, state, rank, "launcher: restart worker").worker = WorkerAt::joining;
    }
    for (int epoch = 0; epoch <= (configuration.swap ? 1 : 0); ++epoch) {
      if (cell.epochs[epoch].alive != 0) continue;
      add_move(moves, state, rank, "launcher: restart optimizer server").epochs[epoch].alive = 1;
    }
    if (configuration.refusals && cell.refused == 0 && epoch_of_change(configuration, cell.prepared) == 1)
      add_move(moves, state, rank, "launcher: refuses the swap").refused = cell.prepared;
    if (cell.reader == ReaderAt::dead) {
      add_move(moves, state, rank, "launcher: restart checkpoint service").reader = ReaderAt::starting;
    }
    if (configuration.stop_request && cell.stop_request == 0) {
      add_move(moves, state, rank, "person: stop").stop_request = 1;
    }
  }
}

void crash_moves(const Configuration& configuration, const State& state, int only_server, std::vector<Move>& moves) {
  if (state.faults >= configuration.faults) return;
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    // A server between chunks and a reader without an order hold nothing that dies with them.
    for (int epoch = 0; epoch < max_epochs; ++epoch) {
      const Epoch& server = cell.epochs[epoch];
      bool holds = server.alive != 0 && !holds_nothing(server);
      if (!holds || (only_server >= 0 && only_server != rank * max_epochs + epoch)) continue;
      Epoch& next = add_move(moves, state, rank, "kill optimizer server").epochs[epoch];
      next.alive = next.adopted = 0;
      for (int strip = 0; strip < max_strips; ++strip) next.stage[strip] = next.part[strip] = 0;
      ++moves.back().state.faults;
    }
    if (only_server >= 0) continue;
    if (cell.worker != WorkerAt::dead && cell.worker != WorkerAt::finished) {
      Cell& next = add_move(moves, state, rank, "kill worker");
      next.worker = next.late = WorkerAt::dead;
      next.worker_generation = next.step = next.bucket = next.gathered_wrong = next.offered = 0;
      next.late_generation = next.late_step = next.late_bucket = 0;
      next.pending = {};
      moves.back().state.generation_due = 1;
      ++moves.back().state.faults;
    }
    bool holds_nothing = cell.reader == ReaderAt::idle && (cell.snapshot & 1) == 0;
    if (configuration.reader && cell.reader != ReaderAt::dead && !holds_nothing) {
      Cell& next = add_move(moves, state, rank, "kill checkpoint service");
      next.reader = ReaderAt::dead;
      next.reader_step = next.reader_chunk = next.reader_wrong = next.reader_flagged = 0;
      next.reader_value[0] = next.reader_value[1] = 0;
      ++moves.back().state.faults;
    }
  }
}

void all_moves(const Configuration& configuration, const State& state, std::vector<Move>& moves) {
  moves.clear();
  for (int server = 0; server < configuration.ranks * max_epochs; ++server) {
    std::size_t before = moves.size();
    if (!server_moves(configuration, state, server / max_epochs, server % max_epochs, moves)) continue;
    // Partial-order reduction. The moves touch words that only this server and its successors look at: they commute
    // with every move and kill of another process, so exploring them and this server's own death here is enough.
    moves.erase(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(before));
    crash_moves(configuration, state, server, moves);
    return;
  }
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    worker_moves(configuration, state, rank, moves);
    if (configuration.reader) reader_moves(configuration, state, rank, moves);
  }
  launcher_moves(configuration, state, moves);
  if (configuration.changes > 0) change_moves(configuration, state, moves);
  crash_moves(configuration, state, -1, moves);
}

void check_end(const Configuration& configuration, const State& state) {
  int last = state.cells[0].decided;
  if (state.history[last].stop_after == 0) throw Violation("deadlock: no process can move");
  for (int rank = 0; rank < configuration.ranks; ++rank) {
    const Cell& cell = state.cells[rank];
    if (cell.worker != WorkerAt::finished) throw Violation("deadlock: a worker waits for ever");
    if (cell.decided != last || committed(configuration, cell) != last) throw Violation("a rank ended elsewhere");
    if (configuration.reader && cell.durable != last) throw Violation("the last snapshot was never reported");
    for (int chunk = 0; chunk < configuration.chunks; ++chunk) {
      for (int half = 0; half < 2; ++half) {
        Content wanted = expected_content(state, last);
        const Epoch& epoch = cell.epochs[epoch_in_force(configuration, cell)];
        if (configuration.swap && epoch.slot[chunk][half] != wanted)
          throw Violation("the final state of the optimizer is not that of an undisturbed run");
        if (cell.master[chunk][half] != wanted || cell.working[chunk][half] != wanted) {
          throw Violation("the final state is not that of an undisturbed run");
        }
      }
    }
  }
}

}  // namespace ganymede::fault
