#include <algorithm>

#include "common/step_protocol/snapshot_machine.h"
#include "tests/fault/protocol/server.h"

namespace ganymede::fault {
namespace {

// How far a strip is in writing its redo area, or in a copy.
enum Part : std::uint8_t { nothing, torn_redo, image_saved, may_overwrite, torn_master, torn_working };

/// A word of a strip in a byte: in a model it has few chunks and tiles.
std::uint64_t word_of(std::uint8_t byte) { return step_protocol::tiles_word(byte / 4u, 0) + byte % 4u; }
std::uint8_t byte_of(std::uint64_t word) {
  return static_cast<std::uint8_t>((word >> step_protocol::tile_bits) * 4 + word % 4);
}

}  // namespace

std::uint8_t Strip::position(const TileAction& tile) const {
  return byte_of(step_protocol::tiles_word(own.chunks_done, tile.tile));
}

TileAction Strip::next() const {
  step_protocol::StripState words{word_of(own.done[index]), word_of(own.seal[index])};
  std::uint64_t begin = step_protocol::tiles_word(own.chunks_done, 0);
  bool believed = server.mutated(Mutation::any_seal_believed) && words.seal != 0;
  if (believed) words.seal = std::max(words.done, begin) + 1;
  return step_protocol::next_tile_action(static_cast<TileStage>(own.stage[index]), words, own.chunks_done,
                                         configuration.strips == 1 ? 2 : 1);
}

/// The update of half a chunk: a pure function of master and gradient under the record. What a standby server makes of
/// gradients that are not those of the step does not matter before it takes over.
Content Strip::updated(int half) const {
  Content before = server.applies ? cell.master[chunk][half] : own.slot[chunk][half];
  bool followed = own.slot[chunk][half] == expected_content(server.state, step - 1);
  bool intact = cell.gradient[chunk][half] == cell.records[record_slot(configuration, step)].generation * 16 + step;
  if (!server.applies && (!followed || !intact)) return torn_content;
  if (configuration.swap && !followed) throw Violation("an optimizer applies a step with a state that is not its own");
  const Record& record = cell.records[record_slot(configuration, step)];
  if (record.step != step) throw Violation("a step is applied whose record is not there");
  if (before != expected_content(server.state, step - 1))
    throw Violation("a step is applied twice, or to a torn chunk");
  if (cell.gradient[chunk][half] != record.generation * 16 + step) throw Violation("torn or foreign gradients applied");
  return static_cast<Content>(before | (record.generation << (4 * (step - 1))));
}

/// Returns true when the only move touches nothing that another process reads or writes.
bool Strip::compute(const TileAction& tile) const {
  if (server.mutated(Mutation::seal_before_redo) && own.seal[index] != position(tile) + 1) {
    own_of(move("server: seals before the redo area is complete")).seal[index] =
        static_cast<std::uint8_t>(position(tile) + 1);
    return false;
  }
  Content value = updated(half(tile));
  if (configuration.matrices && chunk == 1 && cell.returned_rows[half(tile)] != expected_content(server.state, step))
    throw Violation("a matrix is applied that has not come back");
  if (own.part[index] == nothing) {
    Cell& next = move("server: part of the redo area");
    own_of(next).redo[index] = torn_content;
    own_of(next).part[index] = torn_redo;
    return true;
  }
  own_of(done("server: the whole redo area", TileActionKind::compute)).redo[index] = value;
  return false;
}

/// Rule 19, the writer's half: image, then flag. Returns true when it made a move, or another strip is doing it.
bool Strip::save_image() const {
  using namespace step_protocol;
  int snapshot = cell.snapshot / 2;
  std::uint64_t flag =
      cell.image_step[chunk] == 0 ? 0 : image_flag_word(cell.image_step[chunk], cell.image_slot[chunk]);
  if (server.mutated(Mutation::no_before_image) || !needs_image(cell.snapshot, cell.read_mark[chunk], flag))
    return false;
  if (own.part[index] == image_saved) {
    Cell& next = move("server: flags the image");
    next.image_step[chunk] = static_cast<std::uint8_t>(snapshot);
    own_of(next).part[index] = may_overwrite;
    return true;
  }
  for (std::uint8_t part : own.part) {
    if (part == image_saved) return true;
  }
  bool taken[max_chunks] = {};
  for (int other = 0; other < configuration.chunks; ++other) {
    bool in_use = cell.image_step[other] == snapshot && cell.read_mark[other] != snapshot;
    if (in_use) taken[cell.image_slot[other]] = true;
  }
  for (int slot = 0; slot < configuration.image_slots; ++slot) {
    if (taken[slot]) continue;
    Cell& next = move("server: saves the image");
    next.image[slot] = cell.master[chunk][0] == cell.master[chunk][1] ? cell.master[chunk][0] : torn_content;
    next.image_slot[chunk] = static_cast<std::uint8_t>(slot);
    own_of(next).part[index] = image_saved;
    return true;
  }
  Cell& next = move("server: cancels the snapshot, the side buffer stays full");  // rule 20
  next.snapshot = static_cast<std::uint8_t>(ended_word(snapshot));
  return true;
}

/// Returns true when the only move touches nothing that another process reads.
bool Strip::copy(const TileAction& tile) const {
  int part = half(tile);
  if (!server.applies) return copy_state(part);
  if (own.part[index] < may_overwrite && save_image()) return false;
  switch (own.part[index]) {
    case nothing:
    case image_saved:  // cancelled meanwhile
    case may_overwrite: {
      Cell& next = move("server: part of a tile's master");
      next.master[chunk][part] = torn_content;
      if (configuration.swap) own_of(next).slot[chunk][part] = torn_content;
      own_of(next).part[index] = torn_master;
      return !configuration.reader;
    }
    case torn_master: {
      Cell& next = move("server: all of a tile's master, part of its working copy");
      next.master[chunk][part] = own.redo[index];
      if (configuration.swap) own_of(next).slot[chunk][part] = own.redo[index];
      next.working[chunk][part] = torn_content;
      own_of(next).part[index] = torn_working;
      return false;
    }
    default:
      done("server: all of a tile's working copy", TileActionKind::copy).working[chunk][part] = own.redo[index];
      return false;
  }
}

/// Of a standby server: what it keeps of a tile is its own.
bool Strip::copy_state(int half) const {
  if (own.part[index] == nothing) {
    Cell& next = move("standby: part of its state of a tile");
    own_of(next).slot[chunk][half] = torn_content;
    own_of(next).part[index] = torn_master;
  } else {
    own_of(done("standby: all of its state of a tile", TileActionKind::copy)).slot[chunk][half] = own.redo[index];
  }
  return true;
}

/// Returns true when the only move touches nothing that another process reads.
bool Strip::act(const TileAction& tile) const {
  bool begins = tile.kind == TileActionKind::clear_seal || tile.kind == TileActionKind::compute;
  if (server.mutated(Mutation::no_redo_area) && begins) {
    Content value = updated(half(tile));
    Cell& next = done("server: updates a tile in place", TileActionKind::copy);
    next.master[chunk][half(tile)] = next.working[chunk][half(tile)] = value;
    return false;
  }
  switch (tile.kind) {
    case TileActionKind::finished:
      return true;
    case TileActionKind::clear_seal:
      own_of(done("server: clears a seal", tile.kind)).seal[index] = 0;
      return true;
    case TileActionKind::compute:
      return compute(tile);
    case TileActionKind::store_seal:
      own_of(done("server: seals", tile.kind)).seal[index] = static_cast<std::uint8_t>(position(tile) + 1);
      return true;
    case TileActionKind::copy:
      return copy(tile);
    case TileActionKind::count:
      own_of(done("server: counts a tile", tile.kind)).done[index] = static_cast<std::uint8_t>(position(tile) + 1);
      return true;
  }
  return false;
}

}  // namespace ganymede::fault
