#include "tests/fault/checkpoint/killed_child.h"
#include "tests/unit/checkpoint/lost_replica.h"

/// A kill at every point of saving what memory holds, see kill_test.cpp.
namespace ganymede::checkpoint {
namespace {

std::string how_it_ended(LostReplica& lost) {
  if (!lost.world.launcher.failure.empty()) return lost.world.launcher.failure;
  if (lost.world.launcher.committed_step != LostReplica::step) return "it was not committed";
  lost.expect_whole();
  return testing::Test::HasFailure() ? "the checkpoint is not whole" : "";
}

TEST(KilledRescue, IsEndedByServicesThatAreStartedAnew) {
  int points = 0;
  for (int ending = killed; ending == killed; ++points) {
    LostReplica lost;
    lost.order();
    ending = in_child([&] {
      lost.start(end_at(points + 1));
      lost.serve();
      return how_it_ended(lost);
    });
    ASSERT_TRUE(ending == killed || ending == 0) << "point " << points;
    if (ending == 0) break;
    ASSERT_EQ(in_child([&] {
                lost.start([](std::string_view) {});
                for (std::size_t rank : {0, 1}) lost.world.services[rank]->recover();
                for (int turn = 0; turn < 2; ++turn) lost.serve();
                return how_it_ended(lost);
              }),
              0)
        << "point " << points;
  }
  EXPECT_GT(points, 10);
}

}  // namespace
}  // namespace ganymede::checkpoint
