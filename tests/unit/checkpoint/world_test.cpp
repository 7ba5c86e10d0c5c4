#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/list.h"
#include "services/checkpoint/verify.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

namespace ganymede::checkpoint {
namespace {

void nobody(std::uint64_t, std::uint64_t) {}

Verification verify_newest(const std::string& folder) {
  CheckpointView view = open_checkpoint(folder, 0);
  return verify(view, nobody);
}

class EveryWorld : public testing::TestWithParam<Worlds> {};

TEST_P(EveryWorld, CheckpointOfOneWorldIsReadByAnother) {
  test::TemporaryFolder folder;
  Worlds worlds = GetParam();
  TestWorld(test_config(worlds.ranks, worlds.expert_group, worlds.replicas), folder.path()).checkpoint(7);
  TestWorld other(test_config(worlds.new_ranks, worlds.new_expert_group, worlds.new_replicas), folder.path());
  other.load(7);
  for (auto& cell : other.cells) {
    EXPECT_EQ(cell->wrong_elements(7), 0) << "rank " << cell->rank();
    EXPECT_EQ(cell->control().block->restored, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, EveryWorld,
                         testing::Values(Worlds{1, 1, 1, 1}, Worlds{1, 1, 4, 2}, Worlds{2, 1, 3, 1}, Worlds{3, 1, 2, 2},
                                         Worlds{4, 4, 1, 1}, Worlds{4, 2, 4, 1}, Worlds{2, 2, 2, 1}, Worlds{4, 1, 2, 2},
                                         Worlds{4, 1, 3, 1, 4, 1}, Worlds{1, 1, 4, 2, 1, 2}, Worlds{4, 2, 6, 1, 2, 3},
                                         Worlds{3, 3, 2, 1}, Worlds{4, 2, 6, 3}, Worlds{6, 3, 4, 4},
                                         Worlds{6, 3, 3, 1, 2, 1}));

TEST(Verify, HashDependsOnTheStateAloneAndNotOnTheWorld) {
  std::set<std::string> hashes;
  using World = std::tuple<int, int, int>;
  for (auto [ranks, group, replicas] : {World{1, 1, 1},
                                        {2, 1, 1},
                                        {2, 2, 1},
                                        {3, 1, 1},
                                        {4, 2, 1},
                                        {4, 4, 1},
                                        {3, 3, 1},
                                        {6, 3, 1},
                                        {4, 1, 2},
                                        {4, 1, 4},
                                        {4, 2, 2}}) {
    test::TemporaryFolder folder;
    TestWorld(test_config(ranks, group, replicas), folder.path()).checkpoint(7);
    Verification result = verify_newest(folder.path());
    EXPECT_THAT(result.damage, testing::IsEmpty());
    EXPECT_EQ(result.parts, ranks);
    hashes.insert(result.hash);
  }
  EXPECT_EQ(hashes.size(), 1u);
  test::TemporaryFolder folder;
  TestWorld(test_config(2, 1), folder.path()).checkpoint(8);
  EXPECT_FALSE(hashes.contains(verify_newest(folder.path()).hash));
}

TEST(Checkpoint, ReplicasWritePartsOfTheSameSizeThatTogetherAreOneModel) {
  auto bytes = [](int ranks, int replicas) {
    test::TemporaryFolder folder;
    TestWorld(test_config(ranks, 1, replicas), folder.path()).checkpoint(7);
    CheckpointView view = open_checkpoint(folder.path(), 0);
    std::vector<double> parts;
    for (const auto& part : view.manifest().parts) parts.push_back(static_cast<double>(part.bytes));
    return parts;
  };
  double whole = bytes(1, 1)[0];
  for (double part : bytes(4, 4)) EXPECT_NEAR(part, whole / 4, 0.1 * whole);
}

TEST(Checkpoint, NewestAreKeptAndOlderOnesGo) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(2, 1), folder.path());
  for (std::uint64_t step : {10, 20, 30, 40, 50}) world.checkpoint(step);
  std::vector<ListedCheckpoint> listed = list_checkpoints(folder.path());
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].step, 40u);
  EXPECT_TRUE(listed[0].complete && listed[1].complete);
  EXPECT_EQ(listed[1].loss, 2.5);
  EXPECT_GT(listed[1].bytes, 0u);
  EXPECT_EQ(world.launcher.committed_step, 50u);
  EXPECT_TRUE(verify_newest(folder.path()).damage.empty());
}

TEST(Checkpoint, StatisticsOfItsStepComeBackInTheSameRunAlone) {
  test::TemporaryFolder folder, elsewhere;
  TestWorld world(test_config(2, 1), folder.path());
  for (auto& cell : world.cells) {
    cell->fill(7);
    cell->order_snapshot(7, false);
    cell->decide({.step = 8});
    cell->decide({.step = 9});  // the record of step 7 is overwritten before it is read
  }
  world.serve_all();
  TestWorld same(test_config(3, 1), folder.path()), other(test_config(3, 1), elsewhere.path());
  other.load_from = folder.path();
  other.start(elsewhere.path(), [](std::string_view) {});
  same.load(7);
  other.load(7);
  for (auto& cell : same.cells) {
    EXPECT_EQ(cell->control().block->loaded_statistics.steps, 7u);
    EXPECT_EQ(cell->control().block->loaded_statistics.loss.variance, 0.1);
    EXPECT_EQ(cell->control().block->loaded_statistics.grad_norm.variance, 0.3);
  }
  for (auto& cell : other.cells) {
    EXPECT_EQ(cell->control().block->restored, 1u);
    EXPECT_EQ(cell->control().block->loaded_statistics.steps, 0u);
  }
}

TEST(Checkpoint, AfterASwapItHasTheStateOfTheOptimizerInForceWithItsAges) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(2, 1), folder.path());
  world.checkpoint(7);
  for (auto& cell : world.cells) {
    cell->swap();
    for (std::size_t i = 0; i < cell->began().size(); ++i) cell->began()[i] = i % 5;
  }
  world.checkpoint(8);
  for (const service::Manifest& manifest : service::read_manifests(folder.path())) {
    ASSERT_EQ(manifest.optimizers.size(), 1u);
    EXPECT_EQ(manifest.optimizers[0].name, manifest.step == 7 ? "adamw0" : "adamw1");
    EXPECT_EQ(manifest.optimizers[0].version, "1.0");
    EXPECT_EQ(manifest.optimizer, manifest.optimizers[0].name);
  }
  TestWorld other(test_config(3, 1), folder.path());
  other.load(8);
  for (auto& cell : other.cells) {
    EXPECT_EQ(cell->wrong_elements(8), 0);
    for (std::size_t i = 0; i < cell->began().size(); ++i) EXPECT_EQ(cell->began()[i], i % 5);
  }
}

TEST(Checkpoint, ChunkThatIsOverwrittenIsTakenFromItsImage) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  TestCell& cell = *world.cells[0];
  cell.fill(7);
  cell.order_snapshot(7, false);
  // What the optimizer server does to chunk 0: image, flag, overwrite (here with nonsense).
  const placement::Chunk& chunk = cell.placement().chunks[0];
  std::span<float> images = cell.segment(shm::side_name(0)).span<float>("images");
  for (std::size_t slot = 0; slot < 3; ++slot) {
    std::span<float> live = cell.array(TestCell::all_slots()[slot]).subspan(chunk.shard_offset, chunk.count);
    std::size_t image = (3 * 2 + slot) * placement::chunk_elements;
    std::copy(live.begin(), live.end(), images.begin() + static_cast<std::ptrdiff_t>(image));
    std::fill(live.begin(), live.end(), -1.0f);
  }
  auto flags = cell.segment(shm::side_name(0)).span<step_protocol::Word>("image_flags");
  flags[0] = step_protocol::image_flag_word(7, 2);
  flags[1] = step_protocol::image_flag_word(6, 0);  // left by an older snapshot
  world.serve_all();
  for (auto& mark : cell.segment(shm::side_name(0)).span<step_protocol::Word>("read_marks")) EXPECT_EQ(mark, 7u);
  EXPECT_EQ(cell.control().block->snapshot, step_protocol::ended_word(7));
  cell.fill(8);
  world.load(7);
  EXPECT_EQ(cell.wrong_elements(7), 0);
}

TEST(Checkpoint, SnapshotCancelledWhileItIsReadLeavesNothing) {
  test::TemporaryFolder folder;
  TestCell* cell = nullptr;
  int values = 0;
  TestWorld world(test_config(1, 1), folder.path(), [&](std::string_view point) {
    if (point == "value" && ++values == 5) cell->control().block->snapshot = step_protocol::ended_word(7);
  });
  cell = world.cells[0].get();
  world.checkpoint(7);
  EXPECT_TRUE(world.launcher.parts.empty());
  EXPECT_EQ(world.launcher.failure, "");
  EXPECT_THROW(list_checkpoints(folder.path()), Error);  // no checkpoint was ever made
  world.checkpoint(8);
  EXPECT_EQ(world.launcher.committed_step, 8u);
}

TEST(Recover, CancelsTheSnapshotThatItFinds) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  world.cells[0]->order_snapshot(7, false);
  world.recover();
  EXPECT_EQ(world.cells[0]->control().block->snapshot, step_protocol::ended_word(7));
}

TEST(Recover, DoesTheSnapshotOfTheLastStepAgain) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  world.cells[0]->fill(7);
  world.cells[0]->order_snapshot(7, true);
  world.recover();
  EXPECT_EQ(world.cells[0]->control().block->snapshot, step_protocol::armed_word(7));
  world.serve_all();
  EXPECT_EQ(world.launcher.committed_step, 7u);
}

TEST(Recover, ReportsADurablePartAgain) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(2, 1), folder.path());
  for (auto& cell : world.cells) {
    cell->fill(7);
    cell->order_snapshot(7, false);
  }
  for (auto& service : world.services) service->serve();
  world.launcher.parts.clear();  // the launcher was started again
  world.start(folder.path(), [](std::string_view) {});
  world.recover();
  world.serve_all();
  EXPECT_EQ(world.launcher.committed_step, 7u);
  EXPECT_TRUE(verify_newest(folder.path()).damage.empty());
}

TEST(Recover, PartOfAnEarlierRunIsNotTakenForThisOnes) {
  test::TemporaryFolder folder;
  config::Config config = test_config(2, 1);
  {
    TestWorld earlier(config, folder.path());
    earlier.cells[1]->fill(7);
    earlier.cells[1]->order_snapshot(7, false);
    earlier.services[1]->serve();
  }
  TestWorld world(config, folder.path());
  world.recover();
  EXPECT_TRUE(world.launcher.parts.empty());
  EXPECT_THROW(open_checkpoint(folder.path(), 0), Error);
  world.checkpoint(7);
  EXPECT_TRUE(verify_newest(folder.path()).damage.empty());
}

}  // namespace
}  // namespace ganymede::checkpoint
