#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/error.h"
#include "common/step_protocol/control_block.h"

/// How a run of chunks (a span, update_machine.h) is updated by several threads without waiting for one another: its
/// elements are cut into tiles, the tiles into as many strips as the cell has `StripWords`. A strip's tiles are updated
/// in order, by one thread at a time; each is computed into the strip's redo area, sealed, copied into place, counted
/// (rules 12, 13). What to do next is a pure function of the strip's words and of how far this process has come with
/// the current tile. A successor starts with stage `fresh` and continues to the same bits.
namespace ganymede::step_protocol {

constexpr int tile_bits = 20;

/// `StripWords::done` of a strip that has done `tiles` of its tiles in the span before which `chunks_done` chunks were
/// counted. Grows from span to span, so nothing is ever reset.
constexpr std::uint64_t tiles_word(std::uint64_t chunks_done, std::uint64_t tiles) {
  return chunks_done << tile_bits | tiles;
}

struct StripState {
  std::uint64_t done = 0, seal = 0;
};

enum class TileStage : std::uint8_t { fresh, cleared, computed, copied };

enum class TileActionKind : std::uint8_t {
  finished,    // the strip has done its tiles of the span
  clear_seal,  // store seal = 0
  compute,     // redo area of the strip = update of the tile (no shared word changes)
  store_seal,  // store seal = tiles_word of the tile + 1
  copy,        // [before-image if a snapshot is armed], then redo area → master, state, working copy
  count,       // store done = tiles_word of the tile + 1
};

struct TileAction {
  TileActionKind kind = TileActionKind::finished;
  std::uint64_t tile = 0;  // index within the strip's tiles of the span
};

/// Throws the Error that says so.
[[noreturn]] void fail_of_words(const StripState& words, std::uint64_t chunks_done);

/// The next action of a strip with `tiles` tiles in the span that begins at `chunks_done`. Throws Error when the words
/// contradict one another (damaged memory). Here to be inlined: it is asked five times a tile.
inline TileAction next_tile_action(TileStage stage, const StripState& words, std::uint64_t chunks_done,
                                   std::uint64_t tiles) {
  std::uint64_t begin = tiles_word(chunks_done, 0);
  std::uint64_t done = std::max(words.done, begin);  // less: of a span before
  if (done > begin + tiles) fail_of_words(words, chunks_done);
  std::uint64_t tile = done - begin;
  if (tile == tiles) return {TileActionKind::finished, tile};
  switch (stage) {
    case TileStage::fresh:  // rule 13: a seal is believed only for the tile that is next to count
      if (words.seal == done + 1) return {TileActionKind::copy, tile};
      return {words.seal == 0 ? TileActionKind::compute : TileActionKind::clear_seal, tile};
    case TileStage::cleared:
      return {TileActionKind::compute, tile};
    case TileStage::computed:
      return {TileActionKind::store_seal, tile};
    case TileStage::copied:
      return {TileActionKind::count, tile};
  }
  impossible(__FILE__, __LINE__, "unknown stage of a tile");
}

/// The stage after that action was carried out.
inline TileStage after(TileStage stage, TileActionKind kind) {
  switch (kind) {
    case TileActionKind::finished:
      return stage;
    case TileActionKind::clear_seal:
      return TileStage::cleared;
    case TileActionKind::compute:
      return TileStage::computed;
    case TileActionKind::copy:
      return TileStage::copied;
    case TileActionKind::store_seal:  // the seal itself says what is next
    case TileActionKind::count:
      return TileStage::fresh;
  }
  impossible(__FILE__, __LINE__, "unknown action of a tile");
}

}  // namespace ganymede::step_protocol
