#include "launcher/cli/ctl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/error.h"
#include "common/msg/server.h"
#include "common/shm/keeper_client.h"
#include "launcher/cli/status_view.h"
#include "tests/support/served_segments.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;

/// A run directory with a keeper, but without a launcher.
class Ctl : public testing::Test {
 protected:
  Ctl() {
    std::filesystem::create_directory(folder_.path() + "/ipc");
    std::filesystem::create_symlink(keeper_->path(), folder_.path() + "/ipc/keeper.sock");
  }
  ~Ctl() override { std::filesystem::current_path(before_); }

  std::string error_of(const std::string& command) {
    CLI::App app;
    add_ctl(app);
    try {
      app.parse("ctl " + folder_.path() + " " + command);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "no error";
  }

  ExitCode code_ = ExitCode::done;  // of the last error
  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  std::unique_ptr<test::ServedSegments> keeper_ = std::make_unique<test::ServedSegments>(1 << 20);
};

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

/// Stands for the launcher of a run: answers for the status and takes what is to be started again.
class FakeLauncher {
 public:
  FakeLauncher(const std::string& run, int ranks)
      : ranks_(ranks), server_("ipc://" + run + "/ipc/launcher.sock", [this](const std::string&, const auto& request) {
          return answer(request);
        }) {}
  std::vector<int> restarted() const {  // ranks
    std::lock_guard lock(mutex_);
    return restarted_;
  }

 private:
  msg::Message answer(const msg::Message& request) {
    if (const auto* restart = request.as<fbs::RestartRequest>()) {
      std::lock_guard lock(mutex_);
      restarted_.push_back(restart->rank());
      return msg::ack(request);
    }
    return msg::Message::build(0, request.envelope().id(), [this](flatbuffers::FlatBufferBuilder& builder) {
      std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services;
      std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
      std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers;
      for (int rank = 0; rank < ranks_; ++rank)
        cells.push_back(fbs::CreateCellStatusDirect(builder, rank, 0, &services));
      return msg::Message::body(
          fbs::CreateStatusDirect(builder, "/run", 7, 1, 10, "training", &cells, &launchers, 2.5, 0, -1, ""));
    });
  }

  int ranks_;
  mutable std::mutex mutex_;
  std::vector<int> restarted_;
  msg::Server server_;
};

TEST_F(Ctl, RestartTakesTheOnlyRankAndOfSeveralWantsOneNamed) {
  {
    FakeLauncher launcher(folder_.path(), 1);
    testing::internal::CaptureStdout();
    EXPECT_EQ(error_of("restart data"), "no error");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "the data of rank 0 is started again\n");
    EXPECT_EQ(launcher.restarted(), std::vector{0});
  }
  FakeLauncher launcher(folder_.path(), 4);
  EXPECT_EQ(error_of("restart data"), "Each of the ranks 0 to 3 has a service data: name one with --rank R.");
  EXPECT_EQ(code_, ExitCode::usage);
  EXPECT_TRUE(launcher.restarted().empty());
  EXPECT_EQ(error_of("restart data --rank 0"), "no error");
  EXPECT_EQ(launcher.restarted(), std::vector{0});
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
