#include "common/step_protocol/snapshot_machine.h"
#include "tests/fault/protocol/server.h"

namespace ganymede::fault {

step_protocol::UpdateWords Server::words() const {
  bool arms = applies && !mutated(Mutation::armed_late);
  step_protocol::UpdateWords result;
  result.chunks_done = own.chunks_done;
  result.decided_step = cell.decided;
  result.snapshot = cell.snapshot;
  result.record_snapshot_after = newest.snapshot_after != 0 && arms;
  result.record_snapshot_before = newest.snapshot_before != 0 && arms;
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

/// A standby server takes over the state that the record leaves which first names the swap, half a chunk at a time,
/// then counts its step. Returns whether it is at that.
bool Server::adopt() const {
  if (own.chunks_done != 0 && own.adopted == 0) return false;
  if (committed(configuration, cell) < cell.decided) return true;
  int halves = 2 * configuration.chunks;
  bool counts = own.adopted == (mutated(Mutation::adopted_before_slots) ? halves - 1 : halves) && own.chunks_done == 0;
  Epoch& next = own_move(counts ? "standby: counts what it has taken over" : "standby: takes over half of a state");
  if (counts) {
    next.chunks_done = static_cast<std::uint8_t>(cell.decided * configuration.chunks);
    if (own.adopted == halves) next.adopted = 0;
    return true;
  }
  next.slot[own.adopted / 2][own.adopted % 2] = cell.epochs[0].slot[own.adopted / 2][own.adopted % 2];
  next.adopted = static_cast<std::uint8_t>(own.adopted + 1);
  if (next.adopted == halves && own.chunks_done != 0) next.adopted = 0;
  return true;
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

/// Of all strips; returns true when no move touches what another process reads.
bool Server::update(const UpdateAction& action) const {
  if (configuration.matrices && action.chunk == 1 && cell.returned != action.step) return false;
  bool alone = true;
  for (int index = 0; index < configuration.strips; ++index) {
    Strip strip{*this, action, index};
    alone = strip.act(strip.next()) && alone;
  }
  return alone;
}

bool Server::count(const UpdateAction& action) const {
  if (applies && cell.copy_ready[action.chunk] != action.step) {  // the protocol allows it before the count, too
    move("server: publishes a bucket early").copy_ready[action.chunk] = static_cast<std::uint8_t>(action.step);
  }
  ++own_move("server: counts the chunk").chunks_done;
  return false;
}

bool Server::act() const {
  auto chunks = static_cast<std::uint64_t>(configuration.chunks);
  UpdateAction action = step_protocol::next_action({}, words(), chunks);
  if (action.kind == UpdateActionKind::update) {
    bool finished = true;
    for (int index = 0; index < configuration.strips; ++index) {
      finished = finished && Strip{*this, action, index}.next().kind == TileActionKind::finished;
    }
    if (finished) action = step_protocol::next_action(step_protocol::after({}, action), words(), chunks);
  }
  if (arm_late(action)) return false;
  switch (action.kind) {
    case UpdateActionKind::await_decision:
      return false;
    case UpdateActionKind::arm_snapshot:
      if (step_protocol::is_armed(cell.snapshot)) throw Violation("a snapshot is armed over one that is under way");
      move("server: arms the snapshot").snapshot = static_cast<std::uint8_t>(step_protocol::armed_word(action.step));
      return false;
    case UpdateActionKind::update:
      return update(action);
    case UpdateActionKind::count:
      return count(action);
  }
  return false;
}

bool server_moves(const Configuration& configuration, const State& state, int rank, int epoch,
                  std::vector<Move>& moves) {
  Server server{configuration, state, rank, epoch, moves};
  if (server.own.alive == 0 || server.role == ServerPart::none) return false;
  if (server.role == ServerPart::adopt && server.adopt()) return false;
  std::size_t before = moves.size();
  if (server.applies && holds_nothing(server.own) && server.publish()) return false;
  return server.act() && moves.size() > before;
}

}  // namespace ganymede::fault
