#include <gtest/gtest.h>

#include <filesystem>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/list.h"
#include "services/checkpoint/part_reader.h"
#include "services/checkpoint/verify.h"
#include "tests/fault/checkpoint/killed_child.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

/// A kill at every point of writing, committing and pruning checkpoints. RocksDB keeps threads that a fork does not
/// copy, so everything that opens a database runs in a child of its own; segments are shared with all children.
namespace ganymede::checkpoint {
namespace {

/// What every reader must see at any time: every listed checkpoint that counts as complete is intact.
std::string check_folder(const std::string& folder, std::uint64_t at_least) {
  std::vector<service::Manifest> manifests = service::read_manifests(folder);
  if (at_least > 0 && (manifests.empty() || manifests.back().step < at_least)) return "the newest checkpoint is gone";
  for (const service::Manifest& manifest : manifests) {
    CheckpointView view(folder, manifest);
    Verification result = verify(view, [](std::uint64_t, std::uint64_t) {});
    if (!result.damage.empty())
      return fmt::format("step {}: {}: {}", manifest.step, result.damage[0].where, result.damage[0].reason);
  }
  return "";
}

config::Config small_config(int ranks) {
  config::Config config = test_config(ranks, 1);
  config.model.layers = 2;
  config.model.vocabulary = 64;
  config.checkpoint.keep_last = 1;
  return config;
}

class KilledRun : public testing::TestWithParam<int> {};

TEST_P(KilledRun, LeavesWholeCheckpointsOnlyAndTheNextRunGoesOn) {
  config::Config config = small_config(GetParam());
  int points = 0;
  for (int ending = killed; ending == killed; ++points) {
    test::TemporaryFolder folder;
    ending = in_child([&] {
      TestWorld world(config, folder.path(), end_at(points + 1));
      world.recover();
      for (std::uint64_t step : {10, 20, 30}) world.checkpoint(step);
      return world.launcher.failure;
    });
    ASSERT_TRUE(ending == killed || ending == 0) << "point " << points;
    ASSERT_EQ(in_child([&] { return check_folder(folder.path(), ending == 0 ? 30 : 0); }), 0) << "point " << points;
    ASSERT_EQ(in_child([&]() -> std::string {
                std::vector<service::Manifest> manifests = service::read_manifests(folder.path());
                std::uint64_t loaded = manifests.empty() ? 0 : manifests.back().step;
                TestWorld world(config, folder.path());
                world.load(loaded);
                if (loaded > 0 && world.cells[0]->wrong_elements(loaded) != 0) return "the restored state is wrong";
                world.recover();
                world.checkpoint(loaded + 10, true);
                world.recover();
                auto listed = list_checkpoints(folder.path());
                if (listed.size() != 1 || listed[0].step != loaded + 10 || !listed[0].complete)
                  return "the list is wrong";
                return check_folder(folder.path(), loaded + 10);
              }),
              0)
        << "point " << points;
  }
  EXPECT_GT(points, 20);
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledRun, testing::Values(1, 2));

TEST(KilledService, CommitsTheLastCheckpointWhateverThePoint) {
  config::Config config = small_config(1);
  int points = 0;
  for (int ending = killed; ending == killed; ++points) {
    test::TemporaryFolder folder;
    TestWorld world(config, folder.path());
    world.services.clear();
    world.cells[0]->fill(10);
    world.cells[0]->order_snapshot(10, true);
    auto serve = [&](const Reached& reached) {
      world.start(folder.path(), reached);
      world.recover();
      world.serve_all();
      return world.launcher.failure;
    };
    ending = in_child([&] { return serve(end_at(points + 1)); });
    ASSERT_TRUE(ending == killed || ending == 0) << "point " << points;
    ASSERT_EQ(in_child([&] { return serve([](std::string_view) {}); }), 0) << "point " << points;
    ASSERT_EQ(in_child([&] { return check_folder(folder.path(), 10); }), 0) << "point " << points;
    EXPECT_EQ(world.cells[0]->control().block->snapshot, step_protocol::ended_word(10)) << "point " << points;
  }
  EXPECT_GE(points, 8);
}

TEST(KilledService, KeepsAPartThatTheLauncherCountsOnHoweverFarTheStepsWentOn) {
  test::TemporaryFolder folder;
  EXPECT_EQ(in_child([&]() -> std::string {
              TestWorld world(small_config(2), folder.path());
              world.recover();
              for (auto& cell : world.cells) {
                cell->fill(10);
                cell->order_snapshot(10, false);
              }
              world.services[1]->serve();
              for (auto& cell : world.cells) {
                cell->decide({.step = 11, .snapshot_before = 1});
                cell->decide({.step = 12});
              }
              world.start_one(1, folder.path(), [](std::string_view) {});
              world.services[1]->recover();
              world.services[0]->serve();
              world.services[0]->serve();
              if (world.launcher.committed_step != 10) return "the checkpoint was not committed";
              return check_folder(folder.path(), 10);
            }),
            0);
}

TEST(KilledService, DropsAPartOfAnotherLaunch) {
  test::TemporaryFolder folder;
  EXPECT_EQ(in_child([&]() -> std::string {
              TestWorld world(small_config(2), folder.path());
              world.cells[1]->fill(10);
              world.cells[1]->order_snapshot(10, false);
              world.services[1]->serve();
              world.launcher.parts.clear();
              world.cells[1]->job_ = 2;
              world.start_one(1, folder.path(), [](std::string_view) {});
              world.services[1]->recover();
              if (!world.launcher.parts.empty()) return "it was reported again";
              return steps_in_part(folder.path(), 1).empty() ? "" : "it is still there";
            }),
            0);
}

TEST(CheckpointOfRankZero, StandsWhenOlderOnesCannotBeRemoved) {
  test::TemporaryFolder folder;
  EXPECT_EQ(in_child([&]() -> std::string {
              TestWorld world(small_config(1), folder.path());
              world.checkpoint(10);
              // A folder in the place of the old manifest: it is read as damaged, so nothing can be pruned.
              Reached break_pruning = [&](std::string_view point) {
                if (point != "manifest written") return;
                std::string manifest = folder.path() + "/" + service::manifest_name(10);
                std::filesystem::remove(manifest);
                std::filesystem::create_directories(manifest + "/full");
              };
              world.start(folder.path(), break_pruning);
              world.checkpoint(20);
              if (!world.launcher.failure.empty()) return world.launcher.failure;
              return world.launcher.committed_step == 20 ? "" : "it was not committed";
            }),
            0);
}

TEST(CheckpointOfRankZero, IsCommittedBeforeTheNextSnapshotIsTaken) {
  test::TemporaryFolder folder;
  EXPECT_EQ(in_child([&]() -> std::string {
              TestWorld world(small_config(2), folder.path());
              world.cells[0]->fill(10);
              world.cells[1]->fill(10);
              for (auto& cell : world.cells) cell->order_snapshot(10, false);
              world.services[0]->serve();
              world.services[1]->serve();
              for (auto& cell : world.cells) cell->order_snapshot(20, false);
              world.services[0]->serve();
              return world.launcher.committed_step == 10 ? check_folder(folder.path(), 10) : "step 10 was forgotten";
            }),
            0);
}

}  // namespace
}  // namespace ganymede::checkpoint
