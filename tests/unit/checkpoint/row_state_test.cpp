#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/restore.h"
#include "services/checkpoint/verify.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

/// Checkpoints of an optimizer that has state with a value a row of a matrix.
namespace ganymede::checkpoint {
namespace {

void nobody(std::uint64_t, std::uint64_t) {}

config::Config normuon_config(int ranks, int expert_group, int replicas = 1) {
  config::Config config = test_config(ranks, expert_group, replicas);
  config.optimizer.name = "normuon";
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  config.model.layers = 3;
  return config;
}

std::vector<Damage> damage(const std::string& folder) {
  CheckpointView view = open_checkpoint(folder, 0);
  return verify(view, nobody).damage;
}

class RowWorlds : public testing::TestWithParam<Worlds> {};

/// Values of rows have keys and counts of their own, and a value of elements may hold the middle of a row alone.
TEST_P(RowWorlds, CheckpointOfOneIsReadByAnother) {
  test::TemporaryFolder folder;
  Worlds worlds = GetParam();
  TestWorld(normuon_config(worlds.ranks, worlds.expert_group, worlds.replicas), folder.path()).checkpoint(7);
  EXPECT_THAT(damage(folder.path()), testing::IsEmpty());
  TestWorld other(normuon_config(worlds.new_ranks, worlds.new_expert_group, worlds.new_replicas), folder.path());
  other.load(7);
  for (auto& cell : other.cells) EXPECT_EQ(cell->wrong_elements(7), 0) << "rank " << cell->rank();
}

INSTANTIATE_TEST_SUITE_P(Pairs, RowWorlds,
                         testing::Values(Worlds{1, 1, 1, 1}, Worlds{1, 1, 4, 2}, Worlds{2, 1, 3, 1}, Worlds{3, 1, 2, 2},
                                         Worlds{4, 2, 6, 1}, Worlds{4, 1, 3, 1, 4, 1}, Worlds{1, 1, 4, 2, 1, 2},
                                         Worlds{6, 3, 4, 4}));

TEST(RowState, IsTakenFromTheImageOfTheSecondPhase) {
  test::TemporaryFolder folder;
  TestWorld world(normuon_config(1, 1), folder.path());
  TestCell& cell = *world.cells[0];
  cell.fill(7);
  cell.order_snapshot(7, false);
  const std::vector<placement::Chunk>& chunks = cell.placement().chunks;
  auto second = std::ranges::find(chunks, placement::Phase::master, &placement::Chunk::phase);
  auto index = static_cast<std::size_t>(second - chunks.begin());
  placement::StateRun run = cell.placement().state_run(*second, 1);
  auto rows = cell.segment(shm::state_name(0)).span<float>("slot.1").subspan(run.offset, run.count);
  auto master = cell.array(master_slot).subspan(second->shard_offset, second->count);
  float* image = cell.segment(shm::side_name(0)).span<float>("images").data() + 3 * 2 * placement::chunk_elements;
  std::ranges::copy(master, image);
  std::ranges::copy(rows, image + 2 * placement::chunk_elements);
  cell.segment(shm::side_name(0)).span<step_protocol::Word>("image_flags")[index] =
      step_protocol::image_flag_word(7, 2);
  std::ranges::fill(rows, -1.0f);
  std::ranges::fill(master, -1.0f);
  world.serve_all();
  TestWorld other(normuon_config(2, 1), folder.path());
  other.load(7);
  for (auto& each : other.cells) EXPECT_EQ(each->wrong_elements(7), 0);
}

TEST(RowState, ARunWhoseRowsAreElementsIsRefused) {
  test::TemporaryFolder folder;
  TestWorld(normuon_config(1, 1), folder.path()).checkpoint(7);
  placement::Placement placement = placement::build(normuon_config(1, 1), 0, builtin_facts());
  for (placement::OptimizerFacts& one : placement.update.optimizers) one.row_slots.clear();
  CheckpointView view = open_checkpoint(folder.path(), 7);
  std::vector<float> none;
  try {
    restore(view, placement, {none, {none, none}}, nobody);
    ADD_FAILURE() << "it was restored";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("holds row_second_moment of model.layers.0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("by row, and optimizer normuon has it by element"));
  }
}

}  // namespace
}  // namespace ganymede::checkpoint
