#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "common/step_protocol/tile_machine.h"

namespace ganymede::step_protocol {
namespace {

using enum TileActionKind;

/// Carries actions out on the words of a strip until it has done its tiles.
std::vector<TileActionKind> run(StripState& words, std::uint64_t chunks_done, std::uint64_t tiles) {
  std::vector<TileActionKind> kinds;
  TileStage stage = TileStage::fresh;
  while (true) {
    TileAction action = next_tile_action(stage, words, chunks_done, tiles);
    if (action.kind == finished) return kinds;
    kinds.push_back(action.kind);
    std::uint64_t word = tiles_word(chunks_done, action.tile + 1);
    if (action.kind == clear_seal) words.seal = 0;
    if (action.kind == store_seal) words.seal = word;
    if (action.kind == count) words.done = word;
    stage = after(stage, action.kind);
  }
}

TEST(TileMachine, DoesEveryTileInOrder) {
  StripState words;
  EXPECT_EQ(run(words, 7, 2),
            (std::vector{compute, store_seal, copy, count, clear_seal, compute, store_seal, copy, count}));
  EXPECT_EQ(words.done, tiles_word(7, 2));
  EXPECT_EQ(next_tile_action(TileStage::fresh, words, 7, 2).kind, finished);
}

TEST(TileMachine, WordsOfASpanBeforeSayNothingOfThisOne) {
  StripState words{tiles_word(7, 2), tiles_word(7, 2)};
  TileAction action = next_tile_action(TileStage::fresh, words, 9, 3);
  EXPECT_EQ(action.kind, clear_seal);
  EXPECT_EQ(action.tile, 0u);
  run(words, 9, 3);
  EXPECT_EQ(words.done, tiles_word(9, 3));
}

TEST(TileMachine, RestartedServerCopiesASealedTileAgain) {
  EXPECT_EQ(next_tile_action(TileStage::fresh, {tiles_word(7, 1), tiles_word(7, 2)}, 7, 2).kind, copy);
  EXPECT_EQ(next_tile_action(TileStage::fresh, {tiles_word(5, 4), tiles_word(7, 1)}, 7, 2).kind, copy);
}

TEST(TileMachine, RestartedServerDoesNotBelieveTheSealOfACountedTile) {
  EXPECT_EQ(next_tile_action(TileStage::fresh, {tiles_word(7, 1), tiles_word(7, 1)}, 7, 2).kind, clear_seal);
}

TEST(TileMachine, AStripWithoutTilesIsFinished) {
  EXPECT_EQ(next_tile_action(TileStage::fresh, {}, 7, 0).kind, finished);
}

TEST(TileMachine, TilesBeyondTheSpanAreAnError) {
  EXPECT_THROW(next_tile_action(TileStage::fresh, {tiles_word(7, 3), 0}, 7, 2), Error);
  EXPECT_THROW(next_tile_action(TileStage::fresh, {tiles_word(8, 0), 0}, 7, 2), Error);
}

}  // namespace
}  // namespace ganymede::step_protocol
