#include "common/plan/cost/update_time.h"

#include <gtest/gtest.h>

#include <set>

#include "common/plan/simulated/executor.h"
#include "common/plan/timeline.h"
#include "tests/support/builtin_facts.h"
#include "tests/unit/plan/plans.h"

/// The optimizer's update beside the step.
namespace ganymede::plan {
namespace {

TEST(UpdateTime, AnUpdateReadsAndWritesMasterAndStateOnce) {
  config::Config config = small();
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  Hardware hardware;
  hardware.memory.host_gb_per_second = 1;
  double elements = 0;
  for (const placement::OwnedRange& range : placement.owned) elements += static_cast<double>(range.count);
  EXPECT_NEAR(update_ms(config, placement, hardware), elements * (3 * 4 + 4 * 4 + 4) / 1e6, 1e-9);
}

/// A bucket after the other, in forward order; the last is there when the update ends.
TEST(UpdateTime, AGatherWaitsForItsBucketAndTheVoteForAll) {
  config::Config config = small();
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  StepPlan plan = build(config, placement, PlanKind::train);
  Hardware hardware;
  double all = update_ms(config, placement, hardware);
  std::vector<double> from = updated_from_ms(plan, config, placement, hardware);
  ASSERT_EQ(from.size(), plan.operations.size());
  double before = 0;
  std::set<int> gathered;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Operation& o = plan.operations[i];
    if (o.kind == OperationKind::wait_update) {
      EXPECT_DOUBLE_EQ(from[i], all);
    } else if (o.kind != OperationKind::gather) {
      EXPECT_EQ(from[i], 0) << describe(o);
    } else if (gathered.insert(o.bucket).second) {
      EXPECT_GT(from[i], before) << describe(o);
      before = from[i];
    }
  }
  EXPECT_DOUBLE_EQ(before, all);
}

TEST(UpdateTime, OfAStreamedUpdateTheStepSeesWhatTheForwardDoesNotHide) {
  config::Config config = small();
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  Hardware hardware;
  hardware.memory.host_gb_per_second = 1;
  double update = update_ms(config, placement, hardware);
  auto added = [&](bool stream, double ms) {  // a forward of ms for each layer
    config.stream_update = stream;
    StepPlan plan = build(config, placement, PlanKind::train);
    std::vector<double> durations;
    for (const Operation& o : plan.operations) durations.push_back(o.kind == OperationKind::forward ? ms : 0);
    std::vector<double> from = updated_from_ms(plan, config, placement, hardware);
    return length_ms(timeline(plan, {durations, from})) - length_ms(timeline(plan, {durations}));
  };
  EXPECT_NEAR(added(false, update), update, 1e-9);
  EXPECT_GT(added(true, update), 0) << "the embedding is needed at once";
  EXPECT_LT(added(true, update), update / 2);
  EXPECT_NEAR(added(true, 0), update, 1e-9) << "nothing hides it";
}

}  // namespace
}  // namespace ganymede::plan
