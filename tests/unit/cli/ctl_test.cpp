#include "launcher/cli/ctl.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/shm/keeper_client.h"
#include "launcher/cli/status_view.h"
#include "tests/unit/cli/ctl_fixture.h"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;

TEST(CtlHelp, UsageNamesTheRunBeforeTheCommand) {
  CLI::App app("", "ganymede");
  add_ctl(app);
  auto help = [&](const std::string& command) {
    try {
      app.parse("ctl " + command + " --help");
    } catch (const CLI::Success&) {
      return app.help();
    }
    return std::string();
  };
  EXPECT_THAT(help("/run status"), HasSubstr("Usage: ganymede ctl RUN status [OPTIONS]\n"));
  EXPECT_THAT(help("/run restart"), HasSubstr("Usage: ganymede ctl RUN restart [OPTIONS] SERVICE\n"));
  EXPECT_THAT(help(""), HasSubstr("Usage: ganymede ctl [OPTIONS] RUN SUBCOMMAND\n"));
}

TEST(CtlHelp, OfACommandNeedsNoRun) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(with_run_for_help({"ctl", "restart", "--help"}), (Words{"ctl", "RUN", "restart", "--help"}));
  EXPECT_EQ(with_run_for_help({"ctl", "swap-optimizer", "-h"}), (Words{"ctl", "RUN", "swap-optimizer", "-h"}));
  for (const Words& words : {Words{"ctl", "runs/a", "--help"}, Words{"ctl", "status", "status", "--help"},
                             Words{"ctl", "--help"}, Words{"train", "restart", "--help"}})
    EXPECT_EQ(with_run_for_help(words), words);
}

TEST_F(Ctl, SetOfTwoValuesForOneKeyIsRefused) {
  EXPECT_EQ(error_of("set optimizer.lr=1e-3 optimizer.lr=2e-3"),
            "Key 'optimizer.lr' is given twice, as 0.001 and as 0.002: give it once.");
  EXPECT_EQ(code_, ExitCode::usage);
}

TEST_F(Ctl, RunWithALineBreakInItsNameIsShownOnOneLine) {
  std::filesystem::create_directory(folder_.path() + "/a\nb\x1b[31m");
  std::filesystem::current_path(folder_.path() + "/a\nb\x1b[31m");
  EXPECT_THAT(idle_text("stopped", ""), HasSubstr("/a\\nb\\x1b[31m: stopped"));
}

TEST_F(Ctl, RunThatEndsWhileItIsAskedIsSaidToHaveEnded) {
  std::thread end([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    keeper_.reset();
  });
  EXPECT_EQ(error_of("checkpoint"), "The run in " + folder_.path() + " has ended.");
  end.join();
}

TEST_F(Ctl, SegmentThatIsNotReadyMeansThatTheRunStartsOrEnds) {
  shm::KeeperClient(keeper_->path()).create("rank.0/arena", 4096, Deadline::after_seconds(5));
  for (const char* command : {"segments", "segments --json"})
    EXPECT_THAT(error_of(command), HasSubstr("The run is starting or ending: segment rank.0/arena"));
}

}  // namespace
}  // namespace ganymede::cli
