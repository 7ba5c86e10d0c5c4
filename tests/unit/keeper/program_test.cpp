#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/os/process.h"
#include "common/shm/keeper_client.h"
#include "launcher/keeper/program.h"

namespace ganymede::keeper {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The keeper as a child process, with shell scripts for launchers.
class Keeper : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ganymede-keeper-XXXXXX";
    folder_ = ::mkdtemp(name);
    run_ = folder_ + "/run";
  }
  void TearDown() override {
    if (keeper_ > 0) ::kill(keeper_, SIGKILL);
    if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  /// Starts `program` with a launcher that runs this script in the run directory; "$@" are its arguments.
  void start(const std::string& script) {
    std::string launcher = folder_ + "/launcher";
    std::ofstream(launcher) << "#!/bin/bash\n" << script << "\n";
    std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
    keeper_ = ::fork();
    if (keeper_ != 0) return;
    redirect_stderr();
    std::vector<std::string> words = {"ganymede-keeper", "--run", run_, "--", launcher, "--recipe", "r"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::_exit(program(static_cast<int>(argv.size()), argv.data()));
  }

  void redirect_stderr() const {
    if (nobody_reads_) {
      int pipe[2];
      if (::pipe(pipe) != 0) ::_exit(99);
      ::dup2(pipe[1], STDERR_FILENO);
      ::close(pipe[0]);
      ::close(pipe[1]);
      return;
    }
    ::dup2(::open((folder_ + "/stderr").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
  }

  int end() {
    int status = 0;
    ::waitpid(std::exchange(keeper_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const std::string& script) {
    start(script);
    return end();
  }

  std::string content(const std::string& file) const { return os::read_file(run_ + "/" + file); }

  void await(const std::string& file) const {
    for (int i = 0; i < 2000 && ::access((run_ + "/" + file).c_str(), F_OK) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(::access((run_ + "/" + file).c_str(), F_OK), 0) << file;
  }

  /// Whether the process whose id stands in the file is gone (a zombie counts as gone).
  bool gone(const std::string& file) const {
    std::string stat = "/proc/" + std::to_string(std::stoi(content(file))) + "/stat";
    for (int i = 0; i < 500; ++i) {
      std::ifstream in(stat);
      std::string line;
      if (!std::getline(in, line) || line.find(") Z ") != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::string folder_, run_;
  pid_t keeper_ = -1;
  bool nobody_reads_ = false;  // what the keeper says
};

TEST_F(Keeper, MakesAPrivateRunDirectoryAndStartsTheLauncherInIt) {
  EXPECT_EQ(run("echo \"$@\" > arguments; pwd > where; exit 0"), 0);
  EXPECT_EQ(content("arguments"), "--run " + run_ + " --recipe r\n");
  EXPECT_EQ(content("where"), run_ + "\n");
  struct stat status {};
  ASSERT_EQ(::stat((run_ + "/ipc").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(Keeper, TakesOverEveryFinalExitCode) {
  for (int code : {0, 1, 2, 75}) EXPECT_EQ(run("exit " + std::to_string(code)), code);
}

TEST_F(Keeper, StartsALauncherThatWasKilledAgainAndKeepsTheSegments) {
  start(
      "if [ -e again ]; then touch third; while [ ! -e leave ]; do sleep 0.02; done; exit 75; fi\n"
      "touch first; while [ ! -e go ]; do sleep 0.02; done; touch again; kill -9 $$");
  await("first");
  shm::KeeperClient client(run_ + "/ipc/keeper.sock");
  os::Fd fd = client.create("rank.0/master", 4096, Deadline::after_seconds(10));
  ASSERT_EQ(::pwrite(fd.get(), "kept", 4, 0), 4);
  std::ofstream(run_ + "/go") << "";
  await("third");
  char text[5] = {};
  ASSERT_EQ(::pread(client.get("rank.0/master", Deadline::after_seconds(10)).get(), text, 4, 0), 4);
  EXPECT_STREQ(text, "kept");
  std::ofstream(run_ + "/leave") << "";
  EXPECT_EQ(end(), 75);
  EXPECT_THROW(client.list(Deadline::after_seconds(1)), Error);
}

TEST_F(Keeper, StartsAKilledLauncherAgainThoughNobodyReadsWhatItSays) {
  nobody_reads_ = true;
  EXPECT_EQ(run("if [ -e again ]; then exit 75; fi; touch again; kill -9 $$"), 75);
}

TEST_F(Keeper, NoProcessOfAnOldLauncherSeesTheNewOne) {
  EXPECT_EQ(run("if [ -e again ]; then kill -0 $(cat orphan) 2>/dev/null && exit 2; exit 0; fi\n"
                "setsid bash -c 'sleep 1000 & echo $! > orphan; wait' &\n"
                "while [ ! -s orphan ]; do sleep 0.02; done; touch again; kill -9 $$"),
            0);
}

TEST_F(Keeper, LeavesNoProcessBehindAtTheEnd) {
  EXPECT_EQ(run("setsid bash -c 'sleep 1000 & echo $! > orphan' ; while [ ! -s orphan ]; do sleep 0.02; done; exit 1"),
            1);
  EXPECT_TRUE(gone("orphan"));
}

TEST_F(Keeper, EverythingDiesWithTheKeeper) {
  start("echo $$ > launcher; exec sleep 1000");
  await("launcher");
  while (content("launcher").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(keeper_, SIGKILL);
  EXPECT_EQ(end(), -SIGKILL);
  EXPECT_TRUE(gone("launcher"));
}

TEST_F(Keeper, ForwardsSignalsAndEndsWithTheLaunchersCode) {
  start("trap 'touch usr1' USR1; trap 'exit 75' TERM INT; touch ready; while true; do sleep 0.02; done");
  await("ready");
  ::kill(keeper_, SIGUSR1);
  await("usr1");
  ::kill(keeper_, SIGINT);
  EXPECT_EQ(end(), 75);
}

/// A launcher that lists the orders, and crashes once after `signals`. bash can lose a signal that comes while the trap
/// of the one before still runs, so what says that one was seen is written outside the trap.
std::string crash_after(int signals) {
  return "cd ipc; if [ -e again ]; then ls > ../seen; exit 75; fi\n"
         "touch again; n=0; trap 'n=$((n+1))' INT TERM\n"
         "touch ../ready; while [ $n -lt " +
         std::to_string(signals) + " ]; do if [ $n -gt 0 ]; then touch ../got.$n; fi; sleep 0.02; done; kill -9 $$";
}

TEST_F(Keeper, TheNextLauncherKnowsThatTheOneBeforeWasToldToStop) {
  start(crash_after(1));
  await("ready");
  ::kill(keeper_, SIGTERM);
  EXPECT_EQ(end(), 75);
  EXPECT_THAT(content("seen"), HasSubstr("stop\n"));
  EXPECT_THAT(content("seen"), Not(HasSubstr("stop.now")));
}

TEST_F(Keeper, ASecondInterruptIsNotedAsAStopAtOnceAndForgottenByTheNextRun) {
  start(crash_after(2));
  await("ready");
  ::kill(keeper_, SIGINT);
  await("got.1");
  ::kill(keeper_, SIGINT);
  EXPECT_EQ(end(), 75);
  EXPECT_THAT(content("seen"), HasSubstr("stop.now"));
  EXPECT_EQ(run("ls ipc > seen; exit 0"), 0);
  EXPECT_THAT(content("seen"), Not(HasSubstr("stop")));
}

TEST_F(Keeper, ALostTerminalAndTheWarningOfABatchSystemStopTheRunInOrder) {
  for (auto [signal, as] : {std::pair(SIGHUP, "TERM"), std::pair(SIGUSR2, "USR2")}) {
    start("trap 'rm ready; ls ipc > seen; exit 75' " + std::string(as) +
          "; touch ready; while true; do sleep 0.02; done");
    await("ready");
    ::kill(keeper_, signal);
    EXPECT_EQ(end(), 75);
    EXPECT_THAT(content("seen"), testing::AllOf(HasSubstr("stop\n"), Not(HasSubstr("stop.now"))));
  }
}

TEST_F(Keeper, ALauncherThatIsStoppedBeforeItListensIsNotStartedAgain) {
  start("echo x >> starts; touch ready; exec sleep 1000");
  await("ready");
  ::kill(keeper_, SIGTERM);
  EXPECT_EQ(end(), 75);
  EXPECT_EQ(content("starts"), "x\n");
}

TEST_F(Keeper, ALauncherThatCrashesAgainAndAgainEndsTheRunWithOneLine) {
  EXPECT_EQ(run("echo x >> starts; kill -SEGV $$"), 1);
  EXPECT_EQ(content("starts"), "x\nx\nx\nx\nx\n");
  EXPECT_THAT(os::read_file(folder_ + "/stderr"), HasSubstr("5 times within a minute (killed by SIGSEGV"));
}

TEST_F(Keeper, ARunDirectoryInUseIsRefusedWithItsOwner) {
  start("touch ready; while [ ! -e leave ]; do sleep 0.02; done");
  await("ready");
  pid_t first = std::exchange(keeper_, -1);
  EXPECT_EQ(run("exit 0"), 2);
  EXPECT_THAT(os::read_file(folder_ + "/stderr"), HasSubstr("in use by process " + std::to_string(first)));
  std::ofstream(run_ + "/leave") << "";
  keeper_ = first;
  EXPECT_EQ(end(), 0);
}

TEST_F(Keeper, AMissingLauncherIsOneErrorAndLeavesTheDirectoryFree) {
  keeper_ = ::fork();
  if (keeper_ == 0) {
    redirect_stderr();
    std::vector<std::string> words = {"ganymede-keeper", "--run", run_, "--", "/no/such/launcher"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::_exit(program(static_cast<int>(argv.size()), argv.data()));
  }
  EXPECT_EQ(end(), 1);
  EXPECT_THAT(os::read_file(folder_ + "/stderr"), HasSubstr("/no/such/launcher"));
  EXPECT_EQ(run("exit 0"), 0);
}

TEST_F(Keeper, ARunDirectoryThatCannotBeMadeIsOneError) {
  std::ofstream(folder_ + "/file") << "";
  run_ = folder_ + "/file/run";
  EXPECT_EQ(run("exit 0"), 1);
  EXPECT_THAT(os::read_file(folder_ + "/stderr"), HasSubstr("cannot be made"));
}

TEST_F(Keeper, AFolderInThePlaceOfAFileOfAServiceIsOneErrorBeforeTheLauncher) {
  for (const char* name : {"logs/worker.0.log", "logs/data.0.out", "ipc/launcher.sock.lock"}) {
    std::filesystem::create_directories(run_ + "/" + name);
    EXPECT_EQ(run("touch started"), 1) << name;
    std::string said = os::read_file(folder_ + "/stderr");
    EXPECT_EQ(said, fmt::format("{} of the run directory {} is a folder, but a file has to have this name: move it "
                                "away.\n",
                                name, run_));
    EXPECT_FALSE(std::filesystem::exists(run_ + "/started"));
    std::filesystem::remove(run_ + "/" + name);
    std::filesystem::remove(folder_ + "/stderr");
  }
  std::filesystem::create_directory(run_ + "/logs/older");  // of the user's
  EXPECT_EQ(run("exit 0"), 0);
}

TEST_F(Keeper, WrongUsageIsExitCodeTwo) {
  std::vector<std::string> words = {"ganymede-keeper", "--run", run_};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  EXPECT_EQ(program(static_cast<int>(argv.size()), argv.data()), 2);
}

TEST_F(Keeper, LauncherThatHangsIsKilledWhenItIsToldToEndAtOnce) {
  start("trap '' INT; touch ready; while true; do sleep 0.1; done");
  await("ready");
  for (int i = 0; i < 2; ++i) {
    ::kill(keeper_, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // two at once are one
  }
  EXPECT_EQ(end(), 75);
}

TEST_F(Keeper, LauncherThatIsStoppedIsKilledAndTheNextOneKnowsWhyAndForHowLong) {
  EXPECT_EQ(run("if [ -e again ]; then echo $GANYMEDE_ENDED_LAUNCHER > told; exit 75; fi; touch again; kill -STOP $$"),
            75);
  EXPECT_THAT(content("told"), testing::ContainsRegex("^[0-9.]+ [0-9.]+ it was stopped by a signal for [0-9.]+ s"));
}

TEST_F(Keeper, LauncherSharesACounterWithIt) {
  EXPECT_EQ(run("readlink /proc/self/fd/$GANYMEDE_SIGN_OF_LIFE > counter; exit 0"), 0);
  EXPECT_THAT(content("counter"), HasSubstr("eventfd"));
}

}  // namespace
}  // namespace ganymede::keeper
