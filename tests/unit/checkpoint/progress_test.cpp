#include <gtest/gtest.h>

#include "services/checkpoint/part_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

/// What the launcher's watch and a worker that waits for the snapshot see of a slow disk.
namespace ganymede::checkpoint {
namespace {

PartRecord record() {
  PartRecord begun;
  begun.step = 7;
  begun.slots = {"master"};
  return begun;
}

TEST(PartWriter, TellsOfEveryPieceThatGoesToDisk) {
  test::TemporaryFolder folder;
  int pieces = 0;
  PartWriter writer(folder.path() + "/part", record(), [&] { ++pieces; });
  std::vector<ValueBuffer> values(1, ValueBuffer(3 * paced_bytes / sizeof(float)));
  writer.add("a", {static_cast<std::int64_t>(values[0].data().size())}, 0, {"master"}, values);
  writer.add("b", {static_cast<std::int64_t>(values[0].data().size())}, 0, {"master"}, values);
  EXPECT_GE(pieces, 3) << "what is written goes to disk while the part is written, not at its end";
  int before = pieces;
  writer.finish();
  EXPECT_GT(pieces, before);
}

TEST(CheckpointService, MakesProgressWhileItWritesToDisk) {
  test::TemporaryFolder folder;
  int pieces = 0;
  std::uint64_t seen = 0;
  TestCell* cell = nullptr;
  TestWorld world(test_config(1, 1), folder.path(), [&](std::string_view point) {
    if (point != "piece written") return;
    std::uint64_t progress = cell->control().services[static_cast<int>(service::Kind::checkpoint)].progress;
    EXPECT_GT(progress, seen);
    seen = progress;
    ++pieces;
  });
  cell = world.cells[0].get();
  world.checkpoint(7);
  EXPECT_GE(pieces, 4) << "a sync of each slot's file and of the part record";
}

TEST(CheckpointService, MakesProgressWithEveryValueThatItRestores) {
  test::TemporaryFolder folder;
  config::Config config = test_config(1, 1);
  config.model.layers = 1;
  config.model.vocabulary = 40 * 1031;  // one range of many values
  TestWorld(config, folder.path()).checkpoint(7);
  TestWorld world(config, folder.path());
  world.load(7);
  TestCell& cell = *world.cells[0];
  std::uint64_t chunks = cell.placement().chunks.size();
  EXPECT_GT(chunks, 3 * cell.placement().owned.size());
  EXPECT_GT(cell.control().services[static_cast<int>(service::Kind::checkpoint)].progress, 2 * chunks);
}

}  // namespace
}  // namespace ganymede::checkpoint
