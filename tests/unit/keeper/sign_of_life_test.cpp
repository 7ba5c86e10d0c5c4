#include "launcher/keeper/sign_of_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "common/os/process.h"
#include "common/os/process_look.h"

namespace ganymede::keeper {
namespace {

using testing::HasSubstr;

constexpr double tick = 0.2;

/// This process plays the launcher that is looked at, and gives the signs.
class LauncherLifeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto [variable, value] = life_.environment();
    // SignOfLife takes the descriptor over, as a launcher would that inherited it.
    ::setenv(variable.c_str(), std::to_string(::dup(std::atoi(value.c_str()))).c_str(), 1);
    sign_.emplace();
    life_.begin();
  }
  std::optional<LauncherLife::Fault> look() { return life_.look(pid_, now_ += tick); }
  /// Seconds until it is found to be lifeless, within `seconds`.
  std::optional<double> faulty_within(double seconds) {
    double begin = now_;
    while (now_ - begin < seconds)
      if ((fault_ = look())) return now_ - begin;
    return std::nullopt;
  }

  LauncherLife life_;
  std::optional<SignOfLife> sign_;
  std::optional<LauncherLife::Fault> fault_;
  int pid_ = ::getpid();
  double now_ = 1000;
};

TEST_F(LauncherLifeTest, OneThatHasNotBegunToGiveSignsMayTakeAsLongAsItWants) { EXPECT_FALSE(faulty_within(3600)); }

TEST_F(LauncherLifeTest, OneThatGivesSignsIsWell) {
  for (int i = 0; i < 10; ++i) {
    sign_->give();
    EXPECT_FALSE(faulty_within(50));
  }
}

TEST_F(LauncherLifeTest, OneThatBecomesSilentIsFound) {
  sign_->give();
  double seconds = faulty_within(3600).value_or(0);
  EXPECT_NEAR(seconds, 60, 2 * tick);
  EXPECT_THAT(fault_->why, HasSubstr("no sign of life for 60 s"));
}

TEST_F(LauncherLifeTest, OneThatHasSaidItsLastMayTakeAsLongAsItWants) {
  sign_->give();
  EXPECT_FALSE(look());
  sign_->end();
  EXPECT_FALSE(faulty_within(3600));
}

TEST_F(LauncherLifeTest, SignsOfTheOneBeforeDoNotCount) {
  sign_->give();
  EXPECT_FALSE(look());
  sign_->give();
  life_.begin();
  EXPECT_FALSE(faulty_within(3600));
}

TEST_F(LauncherLifeTest, AKeeperThatWasStoppedItselfBlamesNobody) {
  sign_->give();
  EXPECT_FALSE(faulty_within(40));
  now_ += 1000;
  EXPECT_FALSE(faulty_within(40));
  EXPECT_TRUE(faulty_within(40));
}

TEST_F(LauncherLifeTest, StoppedOneIsFoundAfterFiveSecondsWhetherItGaveSignsOrNot) {
  os::Command command;
  command.arguments = {"/bin/sleep", "1000"};
  os::Child child = os::spawn(command);
  pid_ = child.pid;
  os::send_signal(child, SIGSTOP);
  while (os::process_state(pid_) != os::ProcessState::stopped) std::this_thread::yield();
  EXPECT_NEAR(faulty_within(60).value_or(0), 5, 2 * tick);
  EXPECT_THAT(fault_->why, HasSubstr("stopped by a signal for 5"));
  os::send_signal(child, SIGCONT);
  while (os::process_state(pid_) != os::ProcessState::lives) std::this_thread::yield();
  EXPECT_FALSE(faulty_within(3600));
  os::send_signal(child, SIGKILL);
  os::await_ending(child, Deadline::after_seconds(60));
}

TEST_F(LauncherLifeTest, TheCounterIsTakenOverOnce) {
  SignOfLife().give();
  EXPECT_EQ(std::getenv(life_.environment().first.c_str()), nullptr) << "its number will be another descriptor's";
  sign_.reset();
  SignOfLife().give();
  EXPECT_FALSE(faulty_within(3600)) << "no sign came from them";
}

TEST(SignOfLife, OfAProcessThatNoKeeperStartedGoesNowhere) {
  SignOfLife().give();
  ::setenv("GANYMEDE_SIGN_OF_LIFE", "0", 1);
  SignOfLife().give();
  ::unsetenv("GANYMEDE_SIGN_OF_LIFE");
}

}  // namespace
}  // namespace ganymede::keeper
