#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "common/os/files.h"
#include "launcher/supervisor/service_process.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

class ServiceProcessTest : public ::testing::Test {
 protected:
  ServiceProcess make(const std::string& script, ServiceProcess::Ended ended) {
    os::Command command;
    command.arguments = {"/bin/sh", "-c", script};
    command.output_file = folder_.path() + "/out";
    return ServiceProcess(io_, {service::Kind::data, 0}, command, RestartPolicy(2, 600), std::move(ended));
  }
  void run() { io_.run_for(std::chrono::seconds(20)); }

  boost::asio::io_context io_;
  test::TemporaryFolder folder_;
};

TEST_F(ServiceProcessTest, ExitCodeIsSeen) {
  std::optional<os::Ending> seen;
  auto process = make("exit 3", [&](ServiceProcess& self, const os::Ending& ending) {
    seen = ending;
    EXPECT_FALSE(self.alive());
  });
  process.start();
  EXPECT_TRUE(process.alive());
  run();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->exit_code, 3);
}

TEST_F(ServiceProcessTest, KillIsSeenWithItsReason) {
  std::optional<os::Ending> seen;
  auto process = make("exec sleep 100", [&](ServiceProcess& self, const os::Ending& ending) {
    seen = ending;
    EXPECT_EQ(self.killed_because, "it was silent");
  });
  process.start();
  process.signal(SIGKILL, "it was silent");
  run();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->signal, SIGKILL);
}

TEST_F(ServiceProcessTest, IsStartedAgainUntilTheBudgetIsUsedUpAndNeverTwiceAtOnce) {
  int deaths = 0;
  bool exhausted = false;
  // Each process notes its start and its end; two at once would interleave.
  std::string marks = folder_.path() + "/marks";
  auto process = make("echo start >> " + marks + "; sleep 0.02; echo end >> " + marks,
                      [&](ServiceProcess& self, const os::Ending&) {
                        ++deaths;
                        auto delay = self.policy.died(now_seconds());
                        exhausted = !delay;
                        if (delay) self.start_after(*delay);
                      });
  process.start();
  run();
  EXPECT_EQ(deaths, 3);
  EXPECT_TRUE(exhausted);
  EXPECT_EQ(os::read_file(marks), "start\nend\nstart\nend\nstart\nend\n");
}

TEST_F(ServiceProcessTest, CancelledRestartDoesNotStart) {
  auto process = make("exit 0", [&](ServiceProcess&, const os::Ending&) { FAIL() << "it was started"; });
  process.start_after(0);
  process.cancel_restart();
  run();
  EXPECT_FALSE(process.alive());
}

TEST_F(ServiceProcessTest, MessageOfAnEarlierProcessIsNotTakenForTheCurrentOne) {
  auto process = make("exec sleep 100", [](ServiceProcess&, const os::Ending&) {});
  EXPECT_FALSE(process.is_current(0));
  process.start();
  EXPECT_TRUE(process.is_current(process.pid()));
  EXPECT_FALSE(process.is_current(process.pid() + 1));
  process.signal(SIGKILL, "");
  run();
  EXPECT_FALSE(process.is_current(process.pid()));
}

TEST_F(ServiceProcessTest, ProgramThatIsMissingCountsAsADeath) {
  os::Command command;
  command.arguments = {folder_.path() + "/no-such-program"};
  command.output_file = folder_.path() + "/out";
  int deaths = 0;
  ServiceProcess process(io_, {service::Kind::data, 0}, command, RestartPolicy(2, 600),
                         [&](ServiceProcess&, const os::Ending&) { ++deaths; });
  EXPECT_THROW(process.start(), Error);
  process.start_after(0);
  run();
  EXPECT_EQ(deaths, 1);
}

}  // namespace
}  // namespace ganymede::launcher
