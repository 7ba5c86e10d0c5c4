#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/swap.h"
#include "common/step_protocol/update_machine.h"
#include "tests/fault/protocol/model.h"

namespace ganymede::fault {
namespace {

using step_protocol::ServerPart;
using step_protocol::UpdateAction;
using step_protocol::UpdateActionKind;
using step_protocol::UpdateStage;

constexpr Content garbage = 0xffff;

// How far this process is in a copy.
enum Part : std::uint8_t { nothing, image_saved, may_overwrite, first_half, second_half };

struct Server {
  const Configuration& configuration;
  const State& state;
  int rank, number;  // number: of the epoch
  std::vector<Move>& moves;
  const Cell& cell = state.cells[rank];
  const Epoch& own = cell.epochs[number];
  const Record& newest = cell.records[record_slot(configuration, cell.decided)];
  ServerPart role =
      step_protocol::part_of(production_record(newest), static_cast<std::uint64_t>(number),
                             static_cast<std::uint64_t>(epoch_of_change(configuration, newest.swap_change)));
  bool applies = role == ServerPart::applies;

  bool mutated(Mutation mutation) const { return configuration.mutation == mutation; }
  Cell& move(const char* what) const { return add_move(moves, state, rank, what); }
  /// The same, and what it does to the epoch.
  Epoch& own_move(const char* what) const { return move(what).epochs[number]; }
  void at(Cell& next, UpdateStage stage, int part = nothing) const {
    next.epochs[number].stage = static_cast<std::uint8_t>(stage);
    next.epochs[number].part = static_cast<std::uint8_t>(part);
  }
  void done(Cell& next, const UpdateAction& action) const {
    at(next, step_protocol::after({static_cast<UpdateStage>(own.stage)}, action).stage);
  }

  step_protocol::UpdateWords words() const;
  bool publish() const;
  Content updated(Content before, int chunk, int half, int step) const;
  bool compute(const UpdateAction& action) const;
  bool copy(const UpdateAction& action) const;
  bool copy_state(const UpdateAction& action) const;
  bool adopt() const;
  bool save_image(int chunk, int snapshot) const;
  bool update_in_place(const UpdateAction& action) const;
  bool arm_late(const UpdateAction& action) const;
  bool act() const;
};

step_protocol::UpdateWords Server::words() const {
  bool arms = applies && !mutated(Mutation::armed_late);
  step_protocol::UpdateWords result;
  result.chunks_done = own.chunks_done;
  result.seal = own.seal;
  result.decided_step = cell.decided;
  result.snapshot = cell.snapshot;
  result.record_snapshot_after = newest.snapshot_after != 0 && arms;
  result.record_snapshot_before = newest.snapshot_before != 0 && arms;
  if (mutated(Mutation::any_seal_believed) && own.seal != 0) result.seal = own.chunks_done + 1u;
  return result;
}

/// Working copies are published from chunks_done alone, so a successor makes up for a kill after the last count.
bool Server::publish() const {
  for (int chunk = 0; chunk < configuration.chunks; ++chunk) {
    int step = own.chunks_done / configuration.chunks + (own.chunks_done % configuration.chunks > chunk ? 1 : 0);
    if (cell.copy_ready[chunk] >= step) continue;
    move("server: publishes a bucket").copy_ready[chunk] = static_cast<std::uint8_t>(step);
    return true;
  }
  return false;
}

/// The update of half a chunk: a pure function of master and gradient under the record. What a standby server makes of
/// gradients that are not those of the step does not matter before it takes over.
Content Server::updated(Content before, int chunk, int half, int step) const {
  bool followed = own.slot[chunk][half] == expected_content(state, step - 1);
  bool intact = cell.gradient[chunk][half] == cell.records[record_slot(configuration, step)].generation * 16 + step;
  if (!applies && (!followed || !intact)) return garbage;
  if (configuration.swap && !followed) throw Violation("an optimizer applies a step with a state that is not its own");
  const Record& record = cell.records[record_slot(configuration, step)];
  if (record.step != step) throw Violation("a step is applied whose record is not there");
  if (before != expected_content(state, step - 1)) throw Violation("a step is applied twice, or to a torn chunk");
  if (cell.gradient[chunk][half] != record.generation * 16 + step) throw Violation("torn or foreign gradients applied");
  return static_cast<Content>(before | (record.generation << (4 * (step - 1))));
}

bool Server::compute(const UpdateAction& action) const {
  int chunk = static_cast<int>(action.chunk), step = static_cast<int>(action.step);
  bool second_phase = configuration.matrices && chunk == 1;
  if (second_phase && cell.returned != step) return false;
  if (mutated(Mutation::seal_before_redo) && own.seal != own.chunks_done + 1) {
    own_move("server: seals before the redo area is complete").seal = static_cast<std::uint8_t>(own.chunks_done + 1);
    return false;
  }
  int half = own.part;
  if (second_phase && cell.returned_rows[half] != expected_content(state, step))
    throw Violation("a matrix is applied that has not come back");
  Content value = updated(applies ? cell.master[chunk][half] : own.slot[chunk][half], chunk, half, step);
  Cell& next = move(half == 0 ? "server: half of the redo area" : "server: the whole redo area");
  next.epochs[number].redo[half] = value;
  if (half == 0) {
    next.epochs[number].part = 1;
  } else {
    done(next, action);
  }
  return false;
}

/// Rule 19, the writer's half: image, then flag. Returns true when it made a move.
bool Server::save_image(int chunk, int snapshot) const {
  using namespace step_protocol;
  std::uint64_t flag =
      cell.image_step[chunk] == 0 ? 0 : image_flag_word(cell.image_step[chunk], cell.image_slot[chunk]);
  if (mutated(Mutation::no_before_image) || !needs_image(cell.snapshot, cell.read_mark[chunk], flag)) return false;
  if (own.part == image_saved) {
    Cell& next = move("server: flags the image");
    next.image_step[chunk] = static_cast<std::uint8_t>(snapshot);
    next.epochs[number].part = may_overwrite;
    return true;
  }
  bool taken[max_chunks] = {};
  for (int other = 0; other < configuration.chunks; ++other) {
    bool in_use = cell.image_step[other] == snapshot && cell.read_mark[other] != snapshot;
    if (in_use) taken[cell.image_slot[other]] = true;
  }
  for (int slot = 0; slot < configuration.image_slots; ++slot) {
    if (taken[slot]) continue;
    Cell& next = move("server: saves the image");
    next.image[slot] = cell.master[chunk][0] == cell.master[chunk][1] ? cell.master[chunk][0] : Content{0xffff};
    next.image_slot[chunk] = static_cast<std::uint8_t>(slot);
    next.epochs[number].part = image_saved;
    return true;
  }
  Cell& next = move("server: cancels the snapshot, the side buffer stays full");  // rule 20
  next.snapshot = static_cast<std::uint8_t>(ended_word(snapshot));
  return true;
}

bool Server::copy(const UpdateAction& action) const {
  int chunk = static_cast<int>(action.chunk);
  if (!applies) return copy_state(action);
  if (own.part < may_overwrite && save_image(chunk, cell.snapshot / 2)) return false;
  switch (own.part) {
    case nothing:
    case image_saved:  // cancelled meanwhile
    case may_overwrite: {
      Cell& next = move("server: first half of master");
      next.master[chunk][0] = own.redo[0];
      if (configuration.swap) next.epochs[number].slot[chunk][0] = own.redo[0];
      next.epochs[number].part = first_half;
      return !configuration.reader;
    }
    case first_half: {
      Cell& next = move("server: second half of master, first of the working copy");
      next.master[chunk][1] = own.redo[1];
      if (configuration.swap) next.epochs[number].slot[chunk][1] = own.redo[1];
      next.working[chunk][0] = own.redo[0];
      next.epochs[number].part = second_half;
      return false;
    }
    default: {
      Cell& next = move("server: second half of the working copy");
      next.working[chunk][1] = own.redo[1];
      done(next, action);
      return false;
    }
  }
}

/// Of a standby server.
bool Server::copy_state(const UpdateAction& action) const {
  bool second = own.part == first_half;
  Cell& next = move(second ? "standby: second half of its state" : "standby: first half of its state");
  next.epochs[number].slot[action.chunk][second ? 1 : 0] = own.redo[second ? 1 : 0];
  next.epochs[number].part = first_half;
  if (second) done(next, action);
  return false;
}

/// A standby server takes over the state that the record leaves which first names the swap, half a chunk at a time,
/// then counts its step. Returns whether it is at that.
bool Server::adopt() const {
  if (own.chunks_done != 0 && own.part == 0) return false;
  if (committed(configuration, cell) < cell.decided) return true;
  int halves = 2 * configuration.chunks;
  bool counts = own.part == (mutated(Mutation::adopted_before_slots) ? halves - 1 : halves) && own.chunks_done == 0;
  Epoch& next = own_move(counts ? "standby: counts what it has taken over" : "standby: takes over half of a state");
  if (counts) {
    next.chunks_done = static_cast<std::uint8_t>(cell.decided * configuration.chunks);
    if (own.part == halves) next.part = 0;
    return true;
  }
  next.slot[own.part / 2][own.part % 2] = cell.epochs[0].slot[own.part / 2][own.part % 2];
  next.part = static_cast<std::uint8_t>(own.part + 1);
  if (next.part == halves && own.chunks_done != 0) next.part = 0;
  return true;
}

bool Server::update_in_place(const UpdateAction& action) const {
  int chunk = static_cast<int>(action.chunk), step = static_cast<int>(action.step), half = own.part;
  Content value = updated(cell.master[chunk][half], chunk, half, step);
  Cell& next = move("server: updates half a chunk in place");
  next.master[chunk][half] = next.working[chunk][half] = value;
  at(next, half == 0 ? UpdateStage::fresh : UpdateStage::copied, half == 0 ? 1 : 0);
  return false;
}

bool Server::arm_late(const UpdateAction& action) const {
  const Record& before = cell.records[record_slot(configuration, static_cast<int>(action.step) - 1)];
  bool due = before.snapshot_after != 0 && cell.snapshot / 2 < before.step;
  if (!mutated(Mutation::armed_late) || !due || before.step == torn_record) return false;
  bool waits = action.kind == UpdateActionKind::await_decision && before.stop_after == 0;
  if (waits || (action.kind != UpdateActionKind::count && before.stop_after == 0)) return false;
  move("server: arms after a copy").snapshot = static_cast<std::uint8_t>(step_protocol::armed_word(before.step));
  return true;
}

bool Server::act() const {
  UpdateAction action = step_protocol::next_action({static_cast<UpdateStage>(own.stage)}, words(),
                                                   static_cast<std::uint64_t>(configuration.chunks));
  if (arm_late(action)) return false;
  bool in_place = mutated(Mutation::no_redo_area) && own.stage == 0;
  if (in_place && action.kind != UpdateActionKind::await_decision) return update_in_place(action);
  switch (action.kind) {
    case UpdateActionKind::await_decision:
      return false;
    case UpdateActionKind::arm_snapshot: {
      if (step_protocol::is_armed(cell.snapshot)) throw Violation("a snapshot is armed over one that is under way");
      Cell& next = move("server: arms the snapshot");
      next.snapshot = static_cast<std::uint8_t>(step_protocol::armed_word(action.step));
      done(next, action);
      return false;
    }
    case UpdateActionKind::clear_seal: {
      Cell& next = move("server: clears the seal");
      next.epochs[number].seal = 0;
      done(next, action);
      return true;
    }
    case UpdateActionKind::compute:
      return compute(action);
    case UpdateActionKind::store_seal: {
      Cell& next = move("server: seals");
      next.epochs[number].seal = static_cast<std::uint8_t>(own.chunks_done + 1);
      done(next, action);
      return true;
    }
    case UpdateActionKind::copy:
      return copy(action);
    case UpdateActionKind::count: {
      if (applies && cell.copy_ready[action.chunk] != action.step) {  // the protocol allows it before the count, too
        move("server: publishes a bucket early").copy_ready[action.chunk] = static_cast<std::uint8_t>(action.step);
      }
      Cell& next = move("server: counts the chunk");
      ++next.epochs[number].chunks_done;
      done(next, action);
      return false;
    }
  }
  return false;
}

}  // namespace

bool server_moves(const Configuration& configuration, const State& state, int rank, int epoch,
                  std::vector<Move>& moves) {
  Server server{configuration, state, rank, epoch, moves};
  if (server.own.alive == 0 || server.role == ServerPart::none) return false;
  if (server.role == ServerPart::adopt && server.adopt()) return false;
  if (server.applies && server.own.part == 0 && server.own.stage == 0 && server.publish()) return false;
  return server.act();
}

}  // namespace ganymede::fault
