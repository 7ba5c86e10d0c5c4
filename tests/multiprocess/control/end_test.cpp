#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// A run that is ended on purpose, by a person or a batch system, stops after a step with a checkpoint and can go on.
namespace ganymede::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class EndOnPurpose : public ::testing::Test {
 protected:
  void start() {
    run_.start();
    run_.wait_for_step(3);
  }
  void expect_in_order() {
    EXPECT_EQ(run_.wait(), 75) << run_.output();
    EXPECT_THAT(run_.output(), HasSubstr("\ngo on with: "));
    std::string last = std::to_string(run_.last_step());
    EXPECT_THAT(run_.output(), HasSubstr("checkpoint: step " + last + " in "));
    wait_until([&] { return run_.leftovers().empty(); }, 5, "no process is left");
  }
  static std::string seconds_from_now(int seconds) {
    return std::to_string(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) + seconds);
  }

  TrainingRun run_{{"parallel.ranks=2", "run.steps=1000000", "compute.threads=1"}};
};

TEST_F(EndOnPurpose, DrainWaitsForTheEndAndSaysWhatGoesOn) {
  start();
  auto answer = run_.ganymede({"ctl", run_.folder(), "drain"}, 120);
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr(": stopped at step " + std::to_string(run_.last_step())));
  EXPECT_THAT(answer.output, HasSubstr("ganymede train "));
  EXPECT_TRUE(run_.leftovers().empty()) << "drain returns when all is over";
  expect_in_order();
  EXPECT_EQ(run_.ganymede({"ctl", run_.folder(), "drain"}).exit_code, 0) << "once more";
}

class EndBySignal : public EndOnPurpose, public ::testing::WithParamInterface<int> {};

TEST_P(EndBySignal, OfTheKeeperIsInOrder) {
  start();
  run_.signal(GetParam());
  run_.signal(SIGCONT);
  expect_in_order();
}

/// As when a batch system signals a whole job step: services that it ends are started again for the last step.
TEST_P(EndBySignal, OfEveryProcessIsInOrder) {
  start();
  for (int pid : run_.leftovers()) {
    ::kill(pid, SIGCONT);
    ::kill(pid, GetParam());
  }
  expect_in_order();
}

INSTANTIATE_TEST_SUITE_P(Signals, EndBySignal, ::testing::Values(SIGTERM, SIGUSR2),
                         [](const auto& one) { return one.param == SIGTERM ? "Term" : "Usr2"; });

TEST_F(EndOnPurpose, TheEndOfTheSlurmJobIsSeenInTime) {
  run_.environment.emplace_back("SLURM_JOB_END_TIME", seconds_from_now(120));
  run_.start({"--set", "launch.end_margin_seconds=110"});
  expect_in_order();
  EXPECT_THAT(run_.output(), HasSubstr("(SLURM_JOB_END_TIME), in "));
  EXPECT_THAT(run_.output(), HasSubstr("(launch.end_margin_seconds), so the run stops now"));
}

TEST(EndOfASlurmJob, ThatIsFarAwayOrNotUnderstoodChangesNothing) {
  for (const char* end : {"32503680000", "tomorrow"}) {
    TrainingRun run({"run.steps=3"});
    run.environment.emplace_back("SLURM_JOB_END_TIME", end);
    EXPECT_EQ(run.train(), 0) << run.output();
    auto warned = end[0] == 't'
                      ? testing::Matcher<std::string>(HasSubstr("SLURM_JOB_END_TIME is \"tomorrow\", which is no time"))
                      : testing::Matcher<std::string>(Not(HasSubstr("SLURM")));
    EXPECT_THAT(run.output(), warned);
  }
}

}  // namespace
}  // namespace ganymede::test
