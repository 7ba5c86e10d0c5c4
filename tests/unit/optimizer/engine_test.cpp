#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "common/base/error.h"
#include "common/base/random.h"
#include "services/optimizer/loading.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

using step_protocol::TileActionKind;
using step_protocol::UpdateActionKind;

/// Values after each of `steps` undisturbed steps.
std::vector<Values> undisturbed(const config::Config& config, int steps) {
  Cell cell(config);
  UpdateEngine engine = cell.engine();
  std::vector<Values> after;
  for (int i = 0; i < steps; i++) {
    cell.decide();
    Cell::finish(engine);
    after.push_back(cell.values());
  }
  return after;
}

TEST(UpdateEngine, AppliesAStepAndPublishesIt) {
  Cell cell(Cell::small_config());
  Values before = cell.values();
  UpdateEngine engine = cell.engine();
  EXPECT_EQ(engine.advance().action.kind, UpdateActionKind::await_decision);
  cell.decide();
  Cell::finish(engine);
  EXPECT_EQ(cell.committed(), 1u);
  for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), 1u);
  for (const placement::OwnedRange& range : cell.placement.owned) {
    for (std::int64_t i = range.shard_offset; i < range.shard_offset + range.count; i++) {
      ASSERT_TRUE(std::isfinite(cell.memory.master[i]));
    }
    if (cell.placement.parameters[range.parameter].update == model_spec::UpdateKind::selection_bias) continue;
    EXPECT_NE(before.master[range.shard_offset], cell.memory.master[range.shard_offset])
        << cell.placement.parameters[range.parameter].name;
  }
  EXPECT_EQ(std::memcmp(cell.memory.working.data(), cell.memory.master.data(), cell.memory.working.size()), 0);
}

TEST(UpdateEngine, EngineThatDiesAtEveryBoundaryReachesTheSameBits) {
  for (config::ParameterWire wire :
       {config::ParameterWire::fp32, config::ParameterWire::bf16, config::ParameterWire::fp8}) {
    auto expected = undisturbed(Cell::small_config(wire), 3);
    Cell cell(Cell::small_config(wire));
    for (int step = 0; step < 3; step++) {
      cell.decide();
      std::uint64_t deaths = 0;
      cell.finish_with_deaths([&](const Cell::Death&) { deaths++; });
      EXPECT_GE(deaths, 4 * cell.tiles());
      EXPECT_TRUE(cell.values() == expected[step]) << "step " << step + 1;
      for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), step + 1u);
    }
  }
}

/// What a kill in the middle of the action that comes next leaves: `fraction` of what it writes.
void tear(Cell& cell, const Cell::Death& death, double fraction) {
  if (!death.tile) {  // between counting and publishing
    if (death.action.kind == UpdateActionKind::count)
      cell.memory.working_copy_ready[cell.placement.chunks[death.action.chunk].bucket].store(death.action.step - 1);
    return;
  }
  const TileEvent& event = *death.tile;
  const placement::Chunk& chunk = cell.chunk_of(event);
  auto part = static_cast<std::int64_t>(static_cast<double>(event.tile.count) * fraction);
  bool plugin = chunk.parameter >= 0 &&
                cell.placement.parameters[chunk.parameter].update != model_spec::UpdateKind::selection_bias;
  std::int64_t at = chunk.shard_offset + event.tile.from;
  if (event.kind == TileActionKind::clear_seal) {  // inside `compute`
    std::fill_n(cell.redo_of(event, 0), part, std::numeric_limits<float>::quiet_NaN());
  } else if (event.kind == TileActionKind::store_seal && plugin) {  // inside `copy`
    std::copy_n(cell.redo_of(event, 0), event.tile.count, cell.memory.master.data() + at);
    std::copy_n(cell.redo_of(event, 1), part, cell.memory.state[0].data() + at);
  }
}

TEST(UpdateEngine, EngineThatDiesInsideAnActionReachesTheSameBits) {
  auto expected = undisturbed(Cell::small_config(), 2);
  Cell cell(Cell::small_config());
  int at = 0;
  for (int step = 0; step < 2; step++) {
    cell.decide();
    cell.finish_with_deaths([&](const Cell::Death& death) { tear(cell, death, (at++ % 5) / 4.0); });
    EXPECT_TRUE(cell.values() == expected[step]);
    for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), step + 1u);
  }
}

TEST(UpdateEngine, SuccessorPublishesWhatWasCountedAndNoMore) {
  Cell cell(Cell::small_config());
  cell.decide();
  std::uint64_t half = cell.chunks() / 2;
  {
    UpdateEngine engine = cell.engine();
    while (cell.memory.words->chunks_done.load() < half) engine.advance();
    half = cell.memory.words->chunks_done.load();
  }
  ASSERT_LT(half, cell.chunks());
  for (auto& word : cell.memory.working_copy_ready) word.store(step_protocol::never);
  cell.engine();
  std::uint64_t chunk = 0;
  for (std::size_t bucket = 0; bucket < cell.placement.buckets.size(); bucket++) {
    while (chunk < cell.chunks() && cell.placement.chunks[chunk].bucket == static_cast<int>(bucket)) chunk++;
    EXPECT_EQ(cell.memory.working_copy_ready[bucket].load(), chunk <= half ? 1u : 0u) << bucket;
  }
}

TEST(UpdateEngine, BucketIsPublishedOnlyWithItsLastChunk) {
  Cell cell(Cell::small_config());
  UpdateEngine engine = cell.engine();
  cell.decide();
  while (true) {
    Advance done = engine.advance();
    if (done.action.kind == UpdateActionKind::await_decision) break;
    std::uint64_t counted = cell.memory.words->chunks_done.load();
    for (std::uint64_t chunk = counted; chunk < cell.chunks(); chunk++) {
      int bucket = cell.placement.chunks[chunk].bucket;
      ASSERT_EQ(cell.memory.working_copy_ready[bucket].load(), 0u);
    }
  }
}

TEST(UpdateEngine, BucketsOfWhichTheRankOwnsNothingArePublishedToo) {
  config::Config config = Cell::small_config();
  config.parallel.ranks = 6;
  config.model.experts = 2;
  config.model.vocabulary = 4;  // rows of embedding and head: fewer than ranks
  config.data.rows_per_step = 6;
  int empty = 0;
  for (int rank = 0; rank < 6; rank++) {
    Cell cell(config, 6, rank);
    for (const auto& bucket : cell.placement.buckets) empty += bucket.shard_elements() == 0;
    UpdateEngine engine = cell.engine();
    cell.decide();
    Cell::finish(engine);
    for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), 1u) << rank;
  }
  EXPECT_GT(empty, 0);
}

TEST(UpdateEngine, SkippedStepChangesNothingAndIsPublished) {
  Cell cell(Cell::small_config());
  UpdateEngine engine = cell.engine();
  cell.decide();
  Cell::finish(engine);
  Values before = cell.values();
  cell.decide({.apply = false});
  std::fill(cell.memory.redo.begin(), cell.memory.redo.end(), std::nanf(""));
  Cell::finish(engine);
  EXPECT_TRUE(cell.values() == before);
  EXPECT_EQ(cell.committed(), 2u);
  for (const auto& word : cell.memory.working_copy_ready) EXPECT_EQ(word.load(), 2u);
}

TEST(UpdateEngine, SeveralThreadsGiveTheBitsOfOne) {
  for (config::ParameterWire wire : {config::ParameterWire::bf16, config::ParameterWire::fp8}) {
    auto expected = undisturbed(Cell::small_config(wire), 2);
    Cell cell(Cell::small_config(wire));
    UpdateEngine engine = cell.engine(3);
    for (int step = 0; step < 2; step++) {
      cell.decide();
      Cell::finish(engine);
      EXPECT_TRUE(cell.values() == expected[step]);
    }
  }
}

/// Rows of 72 elements: two blocks, and chunks that end within a row and within a block.
config::Config rows_across_chunks() {
  config::Config config = Cell::small_config(config::ParameterWire::fp8);
  config.model.hidden = 72;
  config.model.expert_ffn = 264;
  return config;
}

TEST(UpdateEngine, EncodesABlockOnceAllItsValuesAreNew) {
  config::Config config = rows_across_chunks();
  Cell cell(config);
  auto cut_within_row = [&](const placement::Chunk& chunk) {
    bool experts = cell.placement.buckets[chunk.bucket].kind == model_spec::BucketKind::experts;
    return experts && chunk.parameter >= 0 &&
           (chunk.first + chunk.count) % cell.placement.parameters[chunk.parameter].row_elements() % 128 != 0;
  };
  ASSERT_TRUE(std::any_of(cell.placement.chunks.begin(), cell.placement.chunks.end(), cut_within_row));
  cell.decide();
  cell.finish_with_deaths([](const Cell::Death&) {});
  std::vector<std::byte> published(cell.memory.working.begin(), cell.memory.working.end());
  std::fill(cell.memory.working.begin(), cell.memory.working.end(), std::byte{0});
  publish_all(cell.placement, 1, cell.memory);
  EXPECT_TRUE(std::equal(published.begin(), published.end(), cell.memory.working.begin()));
}

TEST(UpdateEngine, ValueThatFp8CannotCarryEndsTheRunWithTheParametersName) {
  Cell cell(rows_across_chunks());
  auto range = std::find_if(cell.placement.owned.begin(), cell.placement.owned.end(), [&](const auto& owned) {
    return cell.placement.parameters[owned.parameter].name == "model.layers.1.mlp.experts.2.down_proj.weight";
  });
  ASSERT_NE(range, cell.placement.owned.end());
  UpdateEngine engine = cell.engine();
  cell.memory.master[range->shard_offset + 3 * 264 + 7] = std::numeric_limits<float>::infinity();
  cell.decide();
  try {
    Cell::finish(engine);
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("parameter model.layers.1.mlp.experts.2.down_proj.weight is not "
                                                 "finite after step 1 at row 3, column 7 (1 such values"));
  }
  EXPECT_EQ(cell.committed(), 0u);
}

TEST(UpdateEngine, RanksTogetherGiveTheBitsOfOneRank) {
  config::Config config = Cell::small_config();
  Cell whole(config);
  auto run = [](Cell& cell) {
    // Gradients keyed by parameter and element, so that they do not depend on the cut.
    UpdateEngine engine = cell.engine();
    cell.decide();
    auto* gradients = const_cast<float*>(cell.memory.gradients.data());
    for (const auto& range : cell.placement.owned) {
      for (std::int64_t i = 0; i < range.count; i++) {
        gradients[range.shard_offset + i] = static_cast<float>(uniform(5, range.parameter, range.first + i) - 0.5);
      }
    }
    Cell::finish(engine);
  };
  run(whole);
  std::map<int, const float*> by_parameter;
  for (const auto& range : whole.placement.owned)
    by_parameter[range.parameter] = &whole.memory.master[range.shard_offset];
  config.parallel.ranks = 4;
  config.parallel.expert_group = 2;
  for (int rank = 0; rank < 4; rank++) {
    Cell cell(config, 6, rank);
    run(cell);
    for (const auto& range : cell.placement.owned) {
      const float* expected = by_parameter[range.parameter] + range.first;
      ASSERT_EQ(std::memcmp(&cell.memory.master[range.shard_offset], expected, range.count * 4), 0);
    }
  }
}

TEST(UpdateEngine, GapsStayZeroWhateverTheGradientsHold) {
  Cell cell(Cell::small_config());
  UpdateEngine engine = cell.engine();
  cell.decide();
  Cell::finish(engine);
  int gaps = 0;
  for (const placement::Chunk& chunk : cell.placement.chunks) {
    if (chunk.parameter >= 0) continue;
    gaps++;
    for (std::int64_t i = 0; i < chunk.count; i++) EXPECT_EQ(cell.memory.master[chunk.shard_offset + i], 0.0f);
  }
  EXPECT_GT(gaps, 0);
}

void expect_refused(Cell& cell, const std::string& part) {
  UpdateEngine engine = cell.engine();
  try {
    Cell::finish(engine);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
  EXPECT_EQ(cell.committed(), 0u);
}

TEST(UpdateEngine, DamagedOrForeignDecisionsAreRefused) {
  auto decided = [](auto change) {
    auto cell = std::make_unique<Cell>(Cell::small_config());
    cell->decide();
    change(*cell, cell->memory.control->record_of(1));
    return cell;
  };
  using Record = step_protocol::DecisionRecord;
  auto seal = [](Record& record) { record.checksum = record.compute_checksum(); };
  expect_refused(*decided([](Cell&, Record& record) { record.lr = 1; }), "record of step 1 is damaged");
  expect_refused(*decided([&](Cell&, Record& record) { record.optimizer_hash = 1, seal(record); }), "own plugin");
  expect_refused(*decided([](Cell& cell, Record&) { const_cast<std::int64_t&>(cell.memory.expert_counts[0])++; }),
                 "expert counts");
}

}  // namespace
}  // namespace ganymede::optimizer
