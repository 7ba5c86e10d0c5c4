#include "launcher/cli/ctl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "common/base/error.h"
#include "common/shm/keeper_client.h"
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

  std::string error_of(const std::string& command) const {
    CLI::App app;
    add_ctl(app);
    try {
      app.parse("ctl " + folder_.path() + " " + command);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  std::unique_ptr<test::ServedSegments> keeper_ = std::make_unique<test::ServedSegments>(1 << 20);
};

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
