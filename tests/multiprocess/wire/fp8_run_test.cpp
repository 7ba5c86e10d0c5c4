#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/short_run.h"
#include "tests/support/training_run.h"

/// Whole runs that gather their experts in fp8.
namespace ganymede::test {
namespace {

TEST(Fp8Run, AsManyRanksAsRowsHaveTheBitsOfOneRank) {
  TrainingRun one(short_run(1, 30, {"wire.expert_gather=fp8", "data.rows_per_step=3"}));
  TrainingRun many(short_run(3, 30, {"wire.expert_gather=fp8", "data.rows_per_step=3"}));
  ASSERT_EQ(one.train(), 0);
  ASSERT_EQ(many.train(), 0);
  EXPECT_EQ(one.losses(), many.losses());
  EXPECT_EQ(one.state_hash(), many.state_hash());
}

TEST(Fp8Run, KilledOptimizerServerPublishesTheSameBits) {
  TrainingRun calm(short_run(2, 30, {"wire.expert_gather=fp8"})),
      disturbed(short_run(2, 30, {"wire.expert_gather=fp8"}));
  ASSERT_EQ(calm.train(), 0);
  disturbed.start();
  for (int rank : {0, 1}) {
    disturbed.wait_for_step(5 + static_cast<std::uint64_t>(rank) * 8);
    ::kill(disturbed.pid_of("optimizer", rank), SIGKILL);
  }
  ASSERT_EQ(disturbed.wait(), 0);
  EXPECT_EQ(calm.losses(), disturbed.losses());
  EXPECT_EQ(calm.state_hash(), disturbed.state_hash());
}

}  // namespace
}  // namespace ganymede::test
