#include <gtest/gtest.h>
#include <unistd.h>

#include "launcher/supervisor/cells.h"
#include "tests/support/served_segments.h"

namespace ganymede::launcher {
namespace {

class CellsTest : public ::testing::Test {
 protected:
  CellsTest() {
    config_.parallel.ranks = 2;
    job_.id = 7;
    job_.plugins = {{{"adamw", {"momentum"}, false}, "", 0}};
  }
  std::optional<Cells> attach() { return Cells::attach(config_, job_, ranks_, keeper_); }
  Deadline soon() { return Deadline::after_seconds(20); }

  const PlacingProgress silent_ = [](std::uint64_t, std::uint64_t) {};
  const coordinator::RankRange ranks_{0, 2};
  config::Config config_;
  service::Job job_;
  test::ServedSegments served_{std::uint64_t{1} << 40};
  shm::KeeperClient keeper_{served_.path()};
};

TEST_F(CellsTest, AreTakenOverAsTheyWere) {
  {
    Cells cells = Cells::create(config_, job_, ranks_, 5, keeper_, silent_);
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
  Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
  std::vector<std::string> names;
  for (const auto& held : keeper_.list(soon())) names.push_back(held.name);
  for (const std::string& name : names) {
    keeper_.drop(name, soon());
    EXPECT_FALSE(attach()) << name;
    Cells::drop_all(keeper_);
    Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
    EXPECT_TRUE(attach());
  }
}

TEST_F(CellsTest, AreNotTakenOverWhenTheHeadOfAnyOfTheirSegmentsIsDamaged) {
  Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
  for (const auto& held : keeper_.list(soon())) {
    os::Fd fd = keeper_.get(held.name, soon());
    for (off_t offset : {0, 20, 63, 70}) {  // magic, layout hash, checksum, table
      std::uint8_t byte = 0;
      ASSERT_EQ(::pread(fd.get(), &byte, 1, offset), 1);
      for (int flips = 0; flips < 2; ++flips) {
        byte ^= 4;
        ASSERT_EQ(::pwrite(fd.get(), &byte, 1, offset), 1);
        EXPECT_EQ(attach().has_value(), flips == 1) << held.name << " byte " << offset;
      }
    }
  }
}

TEST_F(CellsTest, BeginWithTheSettingOfTheConfiguration) {
  Cells cells = Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
  EXPECT_EQ(cells.prepared_change().number, 0u);
  EXPECT_EQ(cells.prepared_change().lr, config_.optimizer.lr);
  EXPECT_EQ(cells.change_in_force().number, 0u);
}

TEST_F(CellsTest, ChangeThatALauncherHadPreparedInOneCellAloneIsPreparedInAllWhenTheyAreTakenOver) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    Cells cells = Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
    step_protocol::Setting setting = cells.prepared_change();
    setting.number = 1;
    setting.lr = 0.125;
    auto first = static_cast<int>(number - 1);  // the one that has it
    step_protocol::prepare(*cells.control(first).block, setting);
    cells.control(1 - first).block->settings[1].number = 1;  // killed in the middle of the other
    auto taken = attach();
    ASSERT_TRUE(taken);
    for (int rank : {0, 1}) {
      EXPECT_EQ(taken->control(rank).block->prepared_change, 1u);
      EXPECT_EQ(step_protocol::offered_setting(*taken->control(rank).block).lr, 0.125);
    }
    Cells::drop_all(keeper_);
  }
}

TEST_F(CellsTest, AreNotTakenOverWhenTheirMakerDiedBeforeTheEnd) {
  Cells cells = Cells::create(config_, job_, ranks_, 0, keeper_, silent_);
  cells.control(1).block->incarnation.store(0);
  EXPECT_FALSE(attach());
}

}  // namespace
}  // namespace ganymede::launcher
