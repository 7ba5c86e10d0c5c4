#include "common/os/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "common/os/process_look.h"
#include "tests/unit/os/scratch.h"

namespace ganymede::os {
namespace {

using Process = WithFolder;

Command shell(const std::string& script) {
  Command command;
  command.arguments = {"/bin/sh", "-c", script};
  return command;
}

Ending wait_for(const Child& child) {
  pollfd wait{child.pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 60'000), 1) << "the child did not end";
  return poll_ending(child).value_or(Ending{});
}

bool alive(int pid) { return ::kill(pid, 0) == 0; }

TEST_F(Process, EndingTellsExitCodesFromSignals) {
  EXPECT_EQ(wait_for(spawn(shell("exit 0"))).describe(), "exit code 0");
  EXPECT_EQ(wait_for(spawn(shell("exit 75"))).describe(), "exit code 75");
  Child child = spawn(shell("exec sleep 100"));
  EXPECT_FALSE(poll_ending(child));
  send_signal(child, SIGKILL);
  Ending ending = wait_for(child);
  EXPECT_EQ(ending.describe(), "killed by SIGKILL");
  EXPECT_EQ(ending.exit_code, -1);
}

TEST_F(Process, SignalToAnEndedChildReachesNobody) {
  Child child = spawn(shell("exit 3"));
  wait_for(child);
  send_signal(child, SIGKILL);  // its id may be another's now; the pidfd is not
  EXPECT_FALSE(alive(child.pid));
}

TEST_F(Process, ProgramThatCannotStartIsAnErrorThatNamesIt) {
  Command command;
  command.arguments = {in("no-program")};
  try {
    spawn(command);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), in("no-program") + " cannot be started: No such file or directory.");
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
}

TEST_F(Process, OutputIsAppendedAndEnvironmentAdded) {
  ::setenv("GANYMEDE_TEST_OLD", "old", 1);
  Command command = shell("echo $GANYMEDE_TEST_OLD $GANYMEDE_TEST_NEW; echo to stderr >&2");
  command.environment = {{"GANYMEDE_TEST_NEW", "new"}};
  command.output_file = in("out");
  wait_for(spawn(command));
  command.environment = {{"GANYMEDE_TEST_OLD", "replaced"}};
  wait_for(spawn(command));
  EXPECT_EQ(read_file(in("out")), "old new\nto stderr\nreplaced\nto stderr\n");
}

TEST_F(Process, ChildStartsWithFreshSignalsGroupAndInput) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  Command command = shell("read line || echo no input; cut -d ' ' -f 5 /proc/$$/stat; kill -TERM $$; echo survived");
  command.output_file = in("out");
  Child child = spawn(command);
  EXPECT_EQ(wait_for(child).describe(), "killed by SIGTERM");
  EXPECT_EQ(read_file(in("out")), "no input\n" + std::to_string(child.pid) + "\n");
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(Process, DescriptorsDoNotLeakIntoChildren) {
  Command command = shell("ls /proc/self/fd | wc -l");
  command.output_file = in("without");
  wait_for(spawn(command));
  auto lock = try_lock(in("lock"));
  Child sleeper = spawn(shell("exec sleep 100"));  // its pidfd is open here
  command.output_file = in("with");
  wait_for(spawn(command));
  send_signal(sleeper, SIGKILL);
  wait_for(sleeper);
  EXPECT_EQ(read_file(in("with")), read_file(in("without")));
}

TEST_F(Process, ChildDiesWithItsParent) {
  pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    Command command = shell("echo $$ > " + in("pid") + "; mv " + in("pid") + " " + in("ready") + "; exec sleep 100");
    Child child = spawn(command);
    ::pause();
    ::_exit(0);
  }
  auto deadline = Deadline::after_seconds(60);
  while (!std::filesystem::exists(in("ready")) && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  int grandchild = std::stoi(read_file(in("ready")));
  EXPECT_TRUE(alive(grandchild));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  auto state = [&] {  // 'Z' when nobody reaps it
    std::ifstream file("/proc/" + std::to_string(grandchild) + "/stat");
    std::string pid, name, letter;
    file >> pid >> name >> letter;
    return letter;
  };
  while (alive(grandchild) && state() != "Z" && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_FALSE(deadline.passed()) << "process " << grandchild << " outlived its parent";
}

TEST_F(Process, ProgramFolderHoldsThisProgram) { EXPECT_TRUE(std::filesystem::exists(program_folder() + "/unit_os")); }

TEST_F(Process, ThatWasStoppedCanBeTold) {
  Child child = spawn(shell("exec sleep 60"));
  EXPECT_FALSE(is_stopped(child.pid));
  send_signal(child, SIGSTOP);
  Deadline soon = Deadline::after_seconds(10);
  while (!is_stopped(child.pid) && !soon.passed()) std::this_thread::yield();
  EXPECT_TRUE(is_stopped(child.pid));
  send_signal(child, SIGKILL);
  wait_for(child);
  EXPECT_FALSE(is_stopped(child.pid));
  EXPECT_FALSE(is_stopped(0));
}

}  // namespace
}  // namespace ganymede::os
