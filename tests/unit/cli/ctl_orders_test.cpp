#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "common/msg/server.h"
#include "launcher/supervisor/go_on.h"
#include "tests/unit/cli/ctl_fixture.h"

/// What a person orders of a run on purpose: restarts and its end.
namespace ganymede::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Stands for the launcher of a run: a data service that was ordered to start again has another process in the next
/// status, and a step is done.
class FakeLauncher {
 public:
  FakeLauncher(const std::string& run, int ranks)
      : pids_(static_cast<std::size_t>(ranks)),
        server_("ipc://" + run + "/ipc/launcher.sock",
                [this](const std::string&, const auto& request) { return answer(request); }) {}
  std::vector<int> restarted() const {  // ranks
    std::lock_guard lock(mutex_);
    return restarted_;
  }
  int stops() const { return stops_; }
  std::atomic<bool> stuck = false;     // what is ordered does not happen
  std::atomic<int> refusing = -1;      // this rank's binary is given up
  std::atomic<bool> stopping = false;  // the run ends

 private:
  msg::Message answer(const msg::Message& request) {
    std::lock_guard lock(mutex_);
    if (const auto* restart = request.as<fbs::RestartRequest>()) {
      restarted_.push_back(restart->rank());
      if (!stuck) pids_.at(static_cast<std::size_t>(restart->rank())) += 100;
      if (!stuck) ++step_;
      if (restart->rank() == refusing) ++refused_;
      return msg::ack(request);
    }
    if (request.as<fbs::StopRequest>()) {
      ++stops_;
      return msg::ack(request);
    }
    return status(request);
  }

  msg::Message status(const msg::Message& request) const {
    return msg::Message::build(0, request.envelope().id(), [this](flatbuffers::FlatBufferBuilder& builder) {
      std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
      std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers;
      for (int rank = 0; rank < static_cast<int>(pids_.size()); ++rank) {
        std::uint64_t refused = rank == refusing ? refused_ : 0;
        std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services = {fbs::CreateServiceStatusDirect(
            builder, fbs::ServiceKind::data, pids_.at(static_cast<std::size_t>(rank)) + rank + 1, "running", 0, "", "",
            0, nullptr, false, refused > 0 ? "the binary was given up." : nullptr, refused)};
        cells.push_back(fbs::CreateCellStatusDirect(builder, rank, 0, &services));
      }
      return msg::Message::body(fbs::CreateStatusDirect(
          builder, "/run", step_, 1, 10, stopping ? "stopping" : "training", &cells, &launchers, 2.5, 0, -1, ""));
    });
  }

  std::vector<int> pids_;
  std::uint64_t step_ = 7, refused_ = 0;
  mutable std::mutex mutex_;
  std::vector<int> restarted_;
  std::atomic<int> stops_ = 0;
  msg::Server server_;
};

class CtlOrders : public Ctl {
 protected:
  std::string output_of(const std::string& command) {
    testing::internal::CaptureStdout();
    std::string error = error_of(command);
    std::string output = testing::internal::GetCapturedStdout();
    EXPECT_EQ(error, "no error");
    return output;
  }
};

using Ranks = std::vector<int>;

TEST_F(CtlOrders, RestartWithoutARankTakesAllOneAfterAnother) {
  FakeLauncher launcher(folder_.path(), 3);
  std::string output = output_of("restart data");
  EXPECT_EQ(launcher.restarted(), (Ranks{0, 1, 2}));
  EXPECT_THAT(output, StartsWith("the data of rank 0 was started again: process 1 → 101, the run trains at step 8"));
  EXPECT_THAT(output, HasSubstr("\nthe data of rank 2 was started again: process 3 → 103, the run trains at step 10"));
}

TEST_F(CtlOrders, RestartOfOneRankLeavesTheOthers) {
  FakeLauncher launcher(folder_.path(), 3);
  output_of("restart data --rank 1");
  output_of("restart data --rank all");
  EXPECT_EQ(launcher.restarted(), (Ranks{1, 0, 1, 2}));
  for (const char* rank : {"x", "-1", "1.5"}) {
    EXPECT_THAT(error_of("restart data --rank=" + std::string(rank)),
                HasSubstr("a rank is a number from 0 on, or all"));
    EXPECT_EQ(code_, ExitCode::usage);
  }
}

TEST_F(CtlOrders, RestartThatNothingComesOfIsAnErrorAndTheNextRankIsLeftAlone) {
  FakeLauncher launcher(folder_.path(), 2);
  launcher.stuck = true;
  EXPECT_THAT(
      error_of("restart data --wait 1"),
      HasSubstr("The data of rank 0 was ordered to start again, but the run does not train with it after 1.0 s"));
  EXPECT_EQ(launcher.restarted(), (Ranks{0}));
  EXPECT_EQ(output_of("restart data --wait 0"),
            "the data of rank 0 is started again\nthe data of rank 1 is started again\n");
}

TEST_F(CtlOrders, RestartInARunThatEndsMeanwhileIsNoError) {
  FakeLauncher launcher(folder_.path(), 2);
  launcher.stopping = true;
  EXPECT_EQ(output_of("restart data"), "the data of rank 0 was ordered to start again; the run ends now\n");
}

TEST_F(CtlOrders, BinaryThatIsGivenUpStopsTheRollingRestartWithWhy) {
  FakeLauncher launcher(folder_.path(), 3);
  launcher.refusing = 1;
  EXPECT_EQ(error_of("restart data --binary default"),
            "the binary was given up. Rank 0 was started again before: `--rank R --binary default` takes one back.");
  EXPECT_EQ(launcher.restarted(), (Ranks{0, 1}));
}

TEST_F(CtlOrders, WhatIsNoProgramOfTheServiceIsRefusedBeforeAnythingIsOrdered) {
  FakeLauncher launcher(folder_.path(), 1);
  std::string file = folder_.path() + "/program";
  EXPECT_THAT(error_of("restart data --binary " + file), HasSubstr("there is no such file"));
  EXPECT_EQ(code_, ExitCode::usage);
  EXPECT_THAT(error_of("restart data --binary " + folder_.path()), HasSubstr("that is no file"));
  std::ofstream(file) << "#!/bin/sh\necho ganymede-worker 12/34\n";
  EXPECT_THAT(error_of("restart data --binary " + file), HasSubstr("it is not executable: chmod +x"));
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  EXPECT_THAT(error_of("restart data --binary " + file),
              HasSubstr("that is no ganymede-data, or one of before `--protocol`: asked for it in this run it says "
                        "something else (\"ganymede-worker 12/34\")"));
  EXPECT_EQ(code_, ExitCode::usage);
  EXPECT_TRUE(launcher.restarted().empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/programs")) << "no copy stays";
}

TEST_F(CtlOrders, DrainWaitsForTheEndAndSaysWhatGoesOn) {
  FakeLauncher launcher(folder_.path(), 1);
  std::thread end([&] {
    while (launcher.stops() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    launcher::note_go_on({"/home/me/the work", "ganymede train r.toml --steps 50"});
    keeper_.reset();
  });
  std::string output = output_of("drain");
  end.join();
  EXPECT_EQ(launcher.stops(), 1);
  EXPECT_THAT(output, StartsWith("the run finishes its current step, writes a checkpoint and stops\n"));
  EXPECT_THAT(output, HasSubstr("\ngo on with: cd '/home/me/the work' && ganymede train r.toml --steps 50\n"));
  EXPECT_THAT(output_of("drain"), HasSubstr("\ngo on with: ")) << "of one that has ended already";
}

TEST_F(CtlOrders, DrainOfARunThatDoesNotEndInTimeIsAnError) {
  FakeLauncher launcher(folder_.path(), 1);
  EXPECT_THAT(error_of("drain --wait 1"), HasSubstr("has not ended after 1.0 s: it goes on stopping"));
  EXPECT_EQ(output_of("drain --wait 0"), "the run finishes its current step, writes a checkpoint and stops\n");
}

TEST_F(CtlOrders, DrainOfARunThatFailedSaysWhy) {
  keeper_.reset();
  std::ofstream(folder_.path() + "/ipc/failed") << "the disk is full\n";
  EXPECT_EQ(error_of("drain"), "The run failed: the disk is full");
}

}  // namespace
}  // namespace ganymede::cli
