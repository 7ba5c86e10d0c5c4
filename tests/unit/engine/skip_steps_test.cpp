#include <gtest/gtest.h>

#include <cmath>

#include "common/base/hash.h"
#include "common/step_protocol/skip.h"
#include "tests/unit/engine/test_world.h"

/// run.skip_steps: what the batches of some steps teach is left out.
namespace ganymede::worker {
namespace {

std::uint64_t gradients_hash(TestWorld& world, int rank) { return hash64(std::as_bytes(world.cell(rank).gradients())); }

TEST(SkipSteps, StepThatIsListedIsDecidedWithoutBeingComputed) {
  config::Config config = tiny_config();
  config.parallel.ranks = 2;
  config.run.skip_steps = {"2-3"};
  TestWorld world(config);
  world.step(1);
  auto parameters = world.parameters();
  std::uint64_t gradients = gradients_hash(world, 1);
  for (std::uint64_t step : {2u, 3u}) {
    StepResult result = world.step(step);
    EXPECT_EQ(result.record.apply, 0u);
    EXPECT_EQ(result.record.skip_reason, static_cast<std::uint64_t>(step_protocol::SkipReason::listed));
    EXPECT_EQ(result.record.updates, 1u);
    EXPECT_TRUE(std::isnan(result.record.loss_sum));
    EXPECT_EQ(result.tokens, 0u);
    EXPECT_EQ(world.parameters(), parameters);
    EXPECT_EQ(gradients_hash(world, 1), gradients) << "nothing is computed";
    for (int rank : {0, 1})
      EXPECT_EQ(world.cell(rank).control().block->record_of(step).checksum, result.record.checksum);
  }
  StepResult next = world.step(4);
  EXPECT_EQ(next.record.apply, 1u);
  EXPECT_EQ(next.record.updates, 2u);
  EXPECT_TRUE(std::isfinite(next.record.loss_sum));
  EXPECT_NE(world.parameters(), parameters);
}

}  // namespace
}  // namespace ganymede::worker
