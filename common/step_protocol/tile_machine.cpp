#include "common/step_protocol/tile_machine.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::step_protocol {

TileAction next_tile_action(TileStage stage, const StripState& words, std::uint64_t chunks_done, std::uint64_t tiles) {
  std::uint64_t begin = tiles_word(chunks_done, 0);
  std::uint64_t done = std::max(words.done, begin);  // less: of a span before
  if (done > begin + tiles) {
    fail("tiles of chunk {} and later are counted, but {} chunks are; start again from the last checkpoint",
         words.done >> tile_bits, chunks_done);
  }
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

TileStage after(TileStage stage, TileActionKind kind) {
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
