#include <gtest/gtest.h>

#include "launcher/supervisor/restart_policy.h"
#include "launcher/supervisor/vital_signs.h"

namespace ganymede::launcher {
namespace {

TEST(RestartPolicy, FirstRestartIsImmediateAndLaterOnesBackOff) {
  RestartPolicy policy(5, 600);
  EXPECT_EQ(policy.died(0), 0.0);
  EXPECT_DOUBLE_EQ(policy.died(1).value(), 0.1);
  EXPECT_DOUBLE_EQ(policy.died(2).value(), 0.2);
  EXPECT_DOUBLE_EQ(policy.died(3).value(), 0.4);
  EXPECT_DOUBLE_EQ(policy.died(4).value(), 0.8);
  EXPECT_FALSE(policy.died(5));
}

TEST(RestartPolicy, DeathsOutsideTheWindowAreForgotten) {
  RestartPolicy policy(2, 10);
  EXPECT_EQ(policy.died(0), 0.0);
  EXPECT_TRUE(policy.died(9));
  EXPECT_FALSE(policy.died(9.5));
  EXPECT_DOUBLE_EQ(policy.died(11).value(), 0.1);  // only the death at 9 counts
  EXPECT_EQ(policy.died(100), 0.0);
}

TEST(RestartPolicy, ZeroBudgetMeansNoRestart) { EXPECT_FALSE(RestartPolicy(0, 600).died(0)); }

TEST(RestartPolicy, DelayIsBounded) {
  RestartPolicy policy(1000, 1e9);
  double delay = 0;
  for (int i = 0; i < 100; ++i) delay = policy.died(i).value();
  EXPECT_EQ(delay, RestartPolicy::longest_delay);
}

constexpr VitalLimits limits{.start = 60, .silence = 30, .standstill = 120};

TEST(VitalSigns, ServiceThatNeverRegistersIsNoticed) {
  VitalSigns signs{.started = 100};
  EXPECT_EQ(judge(signs, 160, limits), Verdict::healthy);
  EXPECT_EQ(judge(signs, 160.1, limits), Verdict::never_came);
}

TEST(VitalSigns, SilenceIsAFault) {
  VitalSigns signs{.registered = true, .heard = 100, .advanced = 100};
  EXPECT_EQ(judge(signs, 130, limits), Verdict::healthy);
  EXPECT_EQ(judge(signs, 130.1, limits), Verdict::silent);
}

TEST(VitalSigns, HeartbeatsWithoutProgressAreAFaultUnlessItWaitsForOthers) {
  VitalSigns stuck{.registered = true}, waiting{.registered = true}, working{.registered = true};
  for (int second = 0; second <= 130; ++second) {
    hear(stuck, second, 7, false);
    hear(waiting, second, 7, true);
    hear(working, second, static_cast<std::uint64_t>(second / 50), false);
  }
  EXPECT_EQ(judge(stuck, 130, limits), Verdict::stands_still);
  EXPECT_EQ(judge(waiting, 130, limits), Verdict::healthy);
  EXPECT_EQ(judge(working, 130, limits), Verdict::healthy);
}

TEST(VitalSigns, WaitingDoesNotCountAsGrowth) {
  VitalSigns signs{.registered = true};
  hear(signs, 1, 5, false);
  hear(signs, 50, 5, true);
  EXPECT_EQ(signs.grown, 1);
  EXPECT_EQ(signs.advanced, 50);
}

TEST(VitalSigns, NobodyIsBlamedForTimeInWhichTheWatcherSlept) {
  VitalSigns signs{.started = 0, .registered = true, .heard = 10, .advanced = 10};
  forgive(signs, 1000);
  EXPECT_EQ(judge(signs, 1012, limits), Verdict::healthy);
  EXPECT_EQ(judge(signs, 1041, limits), Verdict::silent);
}

}  // namespace
}  // namespace ganymede::launcher
