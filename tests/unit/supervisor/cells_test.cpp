#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "launcher/keeper/segment_server.h"
#include "launcher/supervisor/cells.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

/// A keeper in a thread of the test.
class CellsTest : public ::testing::Test {
 protected:
  CellsTest() {
    config_.parallel.ranks = 2;
    job_.id = 7;
    job_.slots = {"momentum"};
    server_ = std::thread([this] {
      while (!stopping_) {
        pollfd ready{segments_.fd(), POLLIN, 0};
        ::poll(&ready, 1, 20);
        segments_.serve();
      }
    });
  }
  ~CellsTest() override {
    stopping_ = true;
    server_.join();
  }
  std::optional<Cells> attach() { return Cells::attach(config_, job_, keeper_); }
  Deadline soon() { return Deadline::after_seconds(20); }

  config::Config config_;
  service::Job job_;
  test::TemporaryFolder folder_;
  std::string socket_ = folder_.path() + "/keeper.sock";
  keeper::SegmentStore store_{std::uint64_t{1} << 40};
  keeper::SegmentServer segments_{socket_, store_};
  shm::KeeperClient keeper_{socket_};
  std::atomic<bool> stopping_{false};
  std::thread server_;
};

TEST_F(CellsTest, AreTakenOverAsTheyWere) {
  {
    Cells cells = Cells::create(config_, job_, 5, keeper_);
    cells.announce_generation(3);
  }
  auto cells = attach();
  ASSERT_TRUE(cells);
  EXPECT_EQ(cells->load_step(), 5u);
  EXPECT_EQ(cells->decided_step(), 5u);
  EXPECT_EQ(cells->highest_generation(), 3u);
}

TEST_F(CellsTest, AreNotTakenOverWhenAnyOfTheirSegmentsIsMissing) {
  EXPECT_FALSE(attach());
  Cells::create(config_, job_, 0, keeper_);
  std::vector<std::string> names;
  for (const auto& held : keeper_.list(soon())) names.push_back(held.name);
  for (const std::string& name : names) {
    keeper_.drop(name, soon());
    EXPECT_FALSE(attach()) << name;
    Cells::drop_all(keeper_);
    Cells::create(config_, job_, 0, keeper_);
    EXPECT_TRUE(attach());
  }
}

TEST_F(CellsTest, AreNotTakenOverWhenTheirMakerDiedBeforeTheEnd) {
  Cells cells = Cells::create(config_, job_, 0, keeper_);
  cells.control(1).block->incarnation.store(0);
  EXPECT_FALSE(attach());
}

}  // namespace
}  // namespace ganymede::launcher
