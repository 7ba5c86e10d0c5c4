#include "launcher/supervisor/stall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

using os::ProcessState;
using os::ThreadStates;
using testing::HasSubstr;

constexpr double stall_seconds = 5, tick = 0.25;

/// A process that is looked at every quarter of a second, as a launcher does.
struct Watched {
  ProcessState state = ProcessState::lives;
  std::optional<OperationSigns> operation = OperationSigns{.progress = 7, .planned = {0.1, 0.1}};
  int running = 0, blocked = 0;  // threads
  double processors = 0;         // that it uses
  double now = 100, cpu = 30;    // seconds
  StallWatch watch = {};
  std::optional<Stall> found = {};

  std::optional<Stall> look() {
    now += tick;
    cpu += processors * tick;
    return watch.look(now, stall_seconds, state, operation, [&] {
      return std::optional(ThreadStates{running, blocked, cpu});
    });
  }
  /// Seconds until it is found to stand still; nothing: not within `seconds`.
  std::optional<double> stalls_within(double seconds) {
    double begin = now;
    while (now - begin < seconds)
      if ((found = look())) return now - begin;
    return std::nullopt;
  }
};

TEST(StallWatch, StoppedProcessIsFoundAfterTheSecondsOfTheConfiguration) {
  Watched process{.state = ProcessState::stopped};
  EXPECT_DOUBLE_EQ(process.stalls_within(60).value_or(0), stall_seconds + tick);
  EXPECT_DOUBLE_EQ(process.found->since, 100 + tick);
  EXPECT_THAT(process.found->why, HasSubstr("stopped by a signal for 5.0 s"));
}

TEST(StallWatch, OneThatIsStoppedNowAndThenIsNot) {
  Watched process;
  for (int i = 0; i < 20; ++i) {
    process.state = ProcessState::stopped;
    EXPECT_FALSE(process.stalls_within(4));
    process.state = ProcessState::lives;
    ++process.operation->progress;
    EXPECT_FALSE(process.look());
  }
}

TEST(StallWatch, ProcessInADebuggerIsNeverBlamed) {
  Watched process{.state = ProcessState::traced};
  EXPECT_FALSE(process.stalls_within(3600));
  process.state = ProcessState::lives;
  EXPECT_GT(process.stalls_within(60).value_or(0), stall_seconds) << "from where it was let go";
}

TEST(StallWatch, OneThatSleepsInAnOperationOfItsOwnIsFound) {
  Watched process;
  double seconds = process.stalls_within(60).value_or(0);
  EXPECT_GT(seconds, stall_seconds);
  EXPECT_LE(seconds, stall_seconds + 2 * tick);
  EXPECT_THAT(process.found->why, HasSubstr("used no processor in what takes 100 ms"));
}

TEST(StallWatch, AnOperationThatTakesLongHasTenTimesAsLong) {
  Watched process;
  process.operation->planned = {3, 3};
  double seconds = process.stalls_within(600).value_or(0);
  EXPECT_GT(seconds, 30);
  EXPECT_LE(seconds, 30 + 2 * tick);
}

TEST(StallWatch, WhatWasNotDoneBeforeOrWaitsForOthersIsNotJudged) {
  Watched process;
  process.operation->planned = {};
  EXPECT_FALSE(process.stalls_within(3600));
  process.operation.reset();
  EXPECT_FALSE(process.stalls_within(3600));
}

TEST(StallWatch, ProgressBeginsAnew) {
  Watched process;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(process.stalls_within(4.5));
    ++process.operation->progress;
    EXPECT_FALSE(process.look());
  }
}

TEST(StallWatch, OneThatGetsNoProcessorOrWaitsForADiskIsNotBlamed) {
  Watched starved{.running = 1};
  EXPECT_FALSE(starved.stalls_within(3600));
  Watched in_the_kernel{.blocked = 1};
  EXPECT_FALSE(in_the_kernel.stalls_within(3600));
}

/// A tenth of a core for an operation that takes a second of one: it needs more than the limit, and gets it.
TEST(StallWatch, OneThatGetsLittleOfAProcessorIsGivenTheTimeThatItNeeds) {
  Watched process{.running = 2, .processors = 0.1};
  process.operation->planned = {1, 1};
  EXPECT_FALSE(process.stalls_within(50));
  Watched with_one_of_eight{.running = 8, .processors = 1};
  with_one_of_eight.operation->planned = {1, 8};
  EXPECT_FALSE(with_one_of_eight.stalls_within(40));
}

TEST(StallWatch, OneThatSpinsIsFoundByTheProcessorTimeThatItUsed) {
  Watched process{.running = 1, .processors = 1};
  double seconds = process.stalls_within(600).value_or(0);
  EXPECT_GT(seconds, 2 * stall_seconds);
  EXPECT_LE(seconds, 2 * stall_seconds + 2 * tick);
  EXPECT_THAT(process.found->why, HasSubstr("computed all the time"));
}

TEST(StallWatch, OneThatSpinsIsJudgedByAllProcessorsThatItsOperationUses) {
  Watched process{.running = 8, .processors = 8};
  process.operation->planned = {1, 8};
  double seconds = process.stalls_within(600).value_or(0);
  EXPECT_GE(seconds, 10);
  EXPECT_LE(seconds, 12);
}

TEST(StallWatch, NobodyIsBlamedForTimeInWhichTheWatcherSlept) {
  Watched sleeps, stopped{.state = ProcessState::stopped};
  for (Watched* process : {&sleeps, &stopped}) {
    EXPECT_FALSE(process->stalls_within(1));
    process->now += 1000;
    process->watch.forgive(1000);
    EXPECT_FALSE(process->stalls_within(3.5));
    EXPECT_TRUE(process->stalls_within(10));
  }
}

}  // namespace
}  // namespace ganymede::launcher
