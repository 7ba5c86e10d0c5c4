#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/checkpoint/lost_replica.h"

/// A step that the ranks which remain hold in memory goes to disk, for lost replicas as well.
namespace ganymede::checkpoint {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t step = LostReplica::step;
using testing::IsEmpty;

TEST(Rescue, ReplicasThatRemainWriteWhatTheLostOnesAnsweredFor) {
  LostReplica lost;
  lost.serve();
  EXPECT_THAT(lost.world.launcher.parts, IsEmpty()) << "nobody has ordered it";
  lost.order();
  lost.serve();
  lost.expect_whole();
  for (std::size_t rank : {0, 1}) EXPECT_FALSE(lost.world.services[rank]->serve()) << "once is enough";
}

TEST(Rescue, WaitsUntilTheStepIsCommitted) {
  LostReplica lost;
  lost.commit(1, step - 1);
  lost.order();
  lost.serve();
  EXPECT_THAT(lost.world.launcher.parts[step], testing::SizeIs(2)) << "those that rank 0 writes";
  lost.commit(1, step);
  lost.serve();
  lost.expect_whole();
}

/// A launcher may take the order back while it is carried out, and the next step overwrites what is not marked as read.
TEST(Rescue, BelievesNoMarkOfAPredecessorAndMarksOnlyWhatItHasRead) {
  LostReplica lost;
  auto marked = [&] {
    auto marks = lost.world.cells[0]->segment("side.0").span<step_protocol::Word>("read_marks");
    return std::ranges::count_if(marks, [](const auto& mark) { return mark == step; });
  };
  for (auto& mark : lost.world.cells[0]->segment("side.0").span<step_protocol::Word>("read_marks")) mark = step;
  std::vector<std::ptrdiff_t> seen;
  lost.start([&](std::string_view point) {
    if (point == "value") seen.push_back(marked());
  });
  lost.order();
  lost.world.services[0]->serve();
  ASSERT_GT(seen.size(), 10u);
  EXPECT_EQ(seen[0], 0);
  EXPECT_LT(seen[1], seen.back());
  lost.serve();
  lost.expect_whole();
}

TEST(Rescue, ComesAfterASnapshotThatIsUnderWay) {
  LostReplica lost;
  for (std::size_t rank : {0, 1}) lost.world.cells[rank]->order_snapshot(step, false);
  lost.order();
  for (int turn = 0; turn < 2; ++turn) lost.serve();
  lost.expect_whole();
}

TEST(Rescue, RanksAtDifferentStepsAreRefused) {
  LostReplica lost;
  lost.order(step + 1);
  lost.serve();
  EXPECT_THAT(lost.world.launcher.failure, HasSubstr("has decided step 9, and others step 10"));
  EXPECT_THAT(lost.world.launcher.parts, IsEmpty());
}

TEST(Rescue, WhatWasLoadedIsNotWrittenOverItsCheckpoint) {
  LostReplica lost;
  for (std::size_t rank : {0, 1}) lost.control(rank).load_step = step;
  lost.order();
  lost.serve();
  EXPECT_THAT(lost.world.launcher.failure, HasSubstr("loaded with step 9"));
  EXPECT_THAT(lost.world.launcher.parts, IsEmpty());
}

}  // namespace
}  // namespace ganymede::checkpoint
