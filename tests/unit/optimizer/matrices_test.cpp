#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/step_protocol/snapshot_machine.h"
#include "tests/unit/optimizer/cell.h"

/// An optimizer of whole matrices: two phases a step, with the worker between them.
namespace ganymede::optimizer {
namespace {

using placement::Phase;
using step_protocol::TileActionKind;
using step_protocol::UpdateActionKind;

/// Index of the first chunk of this phase that is not a gap.
std::uint64_t first_of(const Cell& cell, Phase phase) {
  auto found =
      std::find_if(cell.placement.chunks.begin(), cell.placement.chunks.end(),
                   [&](const placement::Chunk& chunk) { return chunk.parameter >= 0 && chunk.phase == phase; });
  return static_cast<std::uint64_t>(found - cell.placement.chunks.begin());
}

TEST(Matrices, BothPhasesAreWhatTheirFormulasSay) {
  Cell cell(Cell::muon_config());
  Values before = cell.values();
  UpdateEngine engine = cell.engine();
  cell.decide();
  cell.finish_with_matrices(engine);
  const double scale = 0.5, decay = 1 - 1e-2 * 0.1;
  for (const placement::OwnedRange& range : cell.placement.owned) {
    const auto& parameter = cell.placement.parameters[range.parameter];
    if (!parameter.hidden_matrix()) continue;
    auto rows = static_cast<double>(parameter.rows()), columns = static_cast<double>(parameter.row_elements());
    double step = 1e-2 * std::sqrt(std::max(1.0, rows / columns));
    for (std::int64_t i = 0; i < range.count; i += 7) {
      double gradient = scale * cell.memory.gradients[range.shard_offset + i];
      double momentum = 0.05 * gradient, sent = gradient + 0.95 * (momentum - gradient);
      EXPECT_NEAR(cell.memory.state[0][range.state_offset[0] + i], momentum, 1e-7);
      EXPECT_NEAR(cell.memory.sent[range.matrix_offset + i], sent, 1e-7);
      double expected = before.master[range.shard_offset + i] * decay - step * std::sin(3 * sent);
      EXPECT_NEAR(cell.memory.master[range.shard_offset + i], expected, 1e-7) << parameter.name;
    }
  }
}

TEST(Matrices, TheSecondPhaseWaitsForTheWorkerAndForNothingElse) {
  Cell cell(Cell::muon_config());
  UpdateEngine engine = cell.engine();
  cell.decide();
  Advance done;
  do {
    done = engine.advance();
  } while (done.carried_out);
  EXPECT_EQ(done.action.kind, UpdateActionKind::update);
  std::uint64_t second = first_of(cell, Phase::master);
  EXPECT_LE(done.action.chunk, second);
  EXPECT_EQ(cell.placement.chunks[done.action.chunk].bucket, cell.placement.chunks[second].bucket);
  for (const placement::Chunk& chunk : cell.placement.chunks) {
    if (chunk.phase == Phase::state) {
      EXPECT_EQ(cell.memory.matrices_sent[chunk.bucket].load(), 1u);
    }
  }
  EXPECT_FALSE(engine.advance().carried_out);
  cell.return_matrices();
  EXPECT_TRUE(engine.advance().carried_out);
}

TEST(Matrices, RowStateGoesOutAndComesInWithTheRows) {
  Cell cell(Cell::normuon_config());
  UpdateEngine engine = cell.engine();
  for (int step = 1; step <= 2; step++) {
    Values before = cell.values();
    cell.decide();
    cell.finish_with_matrices(engine);
    std::int64_t seen = 0;
    for (const placement::OwnedRange& range : cell.placement.owned) {
      if (!cell.placement.parameters[range.parameter].hidden_matrix()) continue;
      placement::StateRun run = cell.placement.state_run(range, 1);
      EXPECT_EQ(run.count * cell.placement.parameters[range.parameter].row_elements(), range.count);
      for (std::int64_t row = 0; row < run.count; row++) {
        std::int64_t at = range.row_values_offset + row;
        ASSERT_EQ(cell.memory.sent[at], before.state[1][run.offset + row]);
        ASSERT_EQ(cell.memory.state[1][run.offset + row], cell.memory.returned[at]);
        seen += cell.memory.returned[at] != 0;
      }
    }
    EXPECT_GT(seen, 100);
  }
}

/// The second phase overwrites the master and the state of rows: the image of its chunk has both as they were.
TEST(Matrices, StateOfRowsUnderASnapshotIsSaved) {
  Cell cell(Cell::normuon_config(), 200);
  UpdateEngine engine = cell.engine();
  cell.decide({.snapshot_after = true});
  cell.finish_with_matrices(engine);
  Values before = cell.values();
  cell.decide();
  cell.finish_with_matrices(engine);
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < cell.chunks(); i++) {
    const placement::Chunk& chunk = cell.placement.chunks[i];
    if (chunk.phase != Phase::master) continue;
    std::uint64_t flag = cell.memory.image_flags[i].load();
    ASSERT_TRUE(step_protocol::image_taken(flag, 1));
    const float* image = &cell.memory.images[step_protocol::image_slot(flag) * 3 * placement::chunk_elements];
    EXPECT_EQ(image[0], before.master[chunk.shard_offset]);
    placement::StateRun run = cell.placement.state_run(chunk, 1);
    for (std::int64_t row = 0; row < run.count; row++)
      ASSERT_EQ(image[2 * placement::chunk_elements + row], before.state[1][run.offset + row]);
    compared += run.count;
  }
  EXPECT_GT(compared, 100);
}

/// A row longer than a tile belongs to the tile that it begins in.
TEST(Matrices, RowStateOfLongRowsIsWrittenOnce) {
  config::Config config = Cell::normuon_config();
  config.model.expert_ffn = 1100;  // down projections have rows of it
  Cell cell(config);
  UpdateEngine engine = cell.engine();
  cell.decide();
  cell.finish_with_matrices(engine);
  bool longer = false;
  for (const placement::OwnedRange& range : cell.placement.owned) {
    const auto& parameter = cell.placement.parameters[range.parameter];
    if (!parameter.hidden_matrix()) continue;
    longer |= parameter.row_elements() > placement::tile_elements;
    placement::StateRun run = cell.placement.state_run(range, 1);
    for (std::int64_t row = 0; row < run.count; row++)
      ASSERT_EQ(cell.memory.state[1][run.offset + row], cell.memory.returned[range.row_values_offset + row]);
  }
  EXPECT_TRUE(longer);
}

class MatrixDeaths : public testing::TestWithParam<const char*> {
 protected:
  static config::Config config_of(config::ParameterWire wire = config::ParameterWire::fp32) {
    return std::string(GetParam()) == "muon" ? Cell::muon_config(wire) : Cell::normuon_config(wire);
  }
};
INSTANTIATE_TEST_SUITE_P(Optimizers, MatrixDeaths, testing::Values("muon", "normuon"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(MatrixDeaths, ServersThatDieAtEveryBoundaryReachTheSameBits) {
  for (config::ParameterWire wire : {config::ParameterWire::fp32, config::ParameterWire::fp8}) {
    auto expected = undisturbed_with_matrices(config_of(wire), 3);
    Cell cell(config_of(wire));
    for (std::size_t step = 0; step < 3; step++) {
      cell.decide();
      std::uint64_t deaths = 0;
      cell.finish_with_deaths([&](const Cell::Death&) { deaths++; });
      EXPECT_GE(deaths, 4 * cell.tiles());
      EXPECT_TRUE(cell.values() == expected[step]) << "step " << step + 1;
      for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), step + 1);
    }
  }
}

/// What a kill in the middle of a copy of either phase leaves, and a worker that comes back and does its part again.
TEST_P(MatrixDeaths, ServersThatDieInsideACopyReachTheSameBits) {
  auto expected = undisturbed_with_matrices(config_of(), 2);
  Cell cell(config_of());
  int at = 0;
  for (std::size_t step = 0; step < 2; step++) {
    cell.decide();
    cell.finish_with_deaths([&](const Cell::Death& death) {
      if (!death.tile) return;
      const TileEvent& event = *death.tile;
      const placement::Chunk& chunk = cell.chunk_of(event);
      if (event.kind == TileActionKind::clear_seal) {
        std::fill_n(cell.redo_of(event, 0), event.tile.count, std::numeric_limits<float>::quiet_NaN());
      }
      if (event.kind != TileActionKind::store_seal || chunk.parameter < 0 || chunk.phase == Phase::whole) return;
      auto part = event.tile.count * (at++ % 5) / 4;
      float* to = chunk.phase == Phase::state ? cell.memory.state[0].data() + cell.placement.state_run(chunk, 0).offset
                                              : cell.memory.master.data() + chunk.shard_offset;
      std::fill_n(to + event.tile.from, part, std::numeric_limits<float>::quiet_NaN());
      if (chunk.phase != Phase::master || cell.placement.slots_of(chunk.parameter) < 2) return;
      const placement::OwnedRange& range = cell.placement.owned[static_cast<std::size_t>(chunk.owned)];
      placement::StateRun rows = cell.placement.state_run(range, chunk.first + event.tile.from, part, 1);
      std::fill_n(cell.memory.state[1].data() + rows.offset, rows.count, std::numeric_limits<float>::quiet_NaN());
    });
    EXPECT_TRUE(cell.values() == expected[step]);
  }
}

TEST(Matrices, ASkippedStepNeedsNoWorkerAndChangesNothing) {
  Cell cell(Cell::muon_config());
  UpdateEngine engine = cell.engine();
  cell.decide();
  cell.finish_with_matrices(engine);
  Values before = cell.values();
  cell.decide({.apply = false});
  Cell::finish(engine);
  EXPECT_TRUE(cell.values() == before);
  EXPECT_EQ(cell.committed(), 2u);
}

TEST(Matrices, GroupsHaveRatesOfTheirOwn) {
  Cell cell(Cell::muon_config());
  UpdateEngine engine = cell.engine();
  Values before = cell.values();
  cell.decide();
  cell.finish_with_matrices(engine);
  // The first step of AdamW is its rate, whatever the gradient: that of the second group, half the first one's.
  for (const placement::OwnedRange& range : cell.placement.owned) {
    const auto& parameter = cell.placement.parameters[range.parameter];
    if (parameter.hidden_matrix() || parameter.update == model_spec::UpdateKind::selection_bias) continue;
    double decay = parameter.update == model_spec::UpdateKind::decayed ? 1 - 5e-3 * 0.1 : 1;
    std::int64_t i = range.shard_offset;
    EXPECT_NEAR(std::abs(cell.memory.master[i] - before.master[i] * decay), 5e-3, 1e-6) << parameter.name;
  }
}

}  // namespace
}  // namespace ganymede::optimizer
