#include <gtest/gtest.h>

#include <memory>

#include "common/base/error.h"
#include "common/step_protocol/change.h"

namespace ganymede::step_protocol {
namespace {

Setting setting(std::uint64_t number) {
  Setting result;
  result.number = number;
  result.lr = 0.5 + static_cast<double>(number);
  result.hyper_count = 1;
  result.hyper[0] = 0.9;
  return result;
}

class ChangeTest : public ::testing::Test {
 protected:
  ChangeTest() { prepare(block_, setting(0)); }
  void decide(std::uint64_t step, std::uint64_t number, std::uint64_t since) {
    DecisionRecord& record = block_.record_of(step);
    record = {};
    record.step = step;
    record.change_number = number;
    record.change_step = since;
    record.checksum = record.compute_checksum();
    block_.decided_step = step;
  }
  std::unique_ptr<ControlBlock> owned_ = std::make_unique<ControlBlock>();
  ControlBlock& block_ = *owned_;
};

TEST_F(ChangeTest, PreparedSettingIsOfferedAndTheOneBeforeStaysThere) {
  for (std::uint64_t number = 1; number < 10; ++number) {
    prepare(block_, setting(number));
    EXPECT_EQ(offered_setting(block_).number, number);
    EXPECT_EQ(offered_setting(block_).lr, setting(number).lr);
    EXPECT_EQ(setting_of(block_, number - 1).lr, setting(number - 1).lr);
  }
}

TEST_F(ChangeTest, SlotThatWasLeftHalfWrittenIsNotSeenAndIsWrittenAgain) {
  prepare(block_, setting(1));
  block_.settings[2 % setting_slots] = setting(2);  // killed before the checksum and the word
  EXPECT_EQ(offered_setting(block_).number, 1u);
  EXPECT_FALSE(find_setting(block_, 2));
  Setting other = setting(2);
  other.lr = 7;
  prepare(block_, other);
  EXPECT_EQ(offered_setting(block_).lr, 7);
}

TEST_F(ChangeTest, WhatIsPreparedIsNotReplacedByTheSameOrAnEarlierNumber) {
  prepare(block_, setting(1));
  Setting other = setting(1);
  other.lr = 7;
  prepare(block_, other);
  prepare(block_, setting(0));
  EXPECT_EQ(offered_setting(block_).lr, setting(1).lr);
  EXPECT_EQ(block_.prepared_change, 1u);
}

TEST_F(ChangeTest, DamagedOrMissingSettingIsAnErrorThatNamesTheChange) {
  block_.settings[0].lr = 9;
  for (std::uint64_t number : {0u, 1u}) {
    try {
      setting_of(block_, number);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("change " + std::to_string(number)), std::string::npos);
    }
  }
}

TEST_F(ChangeTest, InForceIsWhatTheNewestDecidedRecordSays) {
  EXPECT_EQ(in_force(block_).number, 0u);
  decide(4, 0, 0);
  decide(5, 1, 5);
  EXPECT_EQ(in_force(block_).number, 1u);
  decide(6, 1, 5);
  EXPECT_EQ(in_force(block_).since_step, 5u);
  block_.record_of(6).checksum += 1;
  EXPECT_EQ(in_force(block_).number, 0u);
}

TEST_F(ChangeTest, ValuesAreComparedWithoutNumbers) {
  Setting same = setting(0);
  same.number = 8;
  EXPECT_TRUE(same_values(setting(0), same));
  same.hyper[0] = 0.8;
  EXPECT_FALSE(same_values(setting(0), same));
  for (std::size_t group : {0u, 1u}) {
    Setting one = setting(0), other = setting(0);
    one.group_count = other.group_count = 2;
    other.groups[group].lr = 0.5;
    EXPECT_FALSE(same_values(one, other));
    other = one;
    other.groups[group].weight_decay = 0.5;
    EXPECT_FALSE(same_values(one, other));
    EXPECT_TRUE(same_values(one, one));
  }
}

TEST_F(ChangeTest, ValuesOfAGroupAndTheOptimizerItselfAreCompared) {
  Setting one = setting(0);
  one.group_count = 2;
  Setting group = one, decay = one, optimizer = one;
  group.groups[1].lr = 0.1;
  EXPECT_FALSE(same_values(one, group));
  decay.groups[0].weight_decay = 0.1;
  EXPECT_FALSE(same_values(one, decay));
  optimizer.state_epoch = 1;
  EXPECT_FALSE(same_values(one, optimizer));
}

TEST_F(ChangeTest, EpochInForceIsTheOneOfTheNewestDecidedRecord) {
  EXPECT_EQ(epoch_in_force(block_), 0u);
  decide(4, 0, 0);
  EXPECT_EQ(epoch_in_force(block_), 0u);
  decide(5, 1, 5);
  block_.record_of(5).state_epoch = 3;
  block_.record_of(5).checksum = block_.record_of(5).compute_checksum();
  EXPECT_EQ(epoch_in_force(block_), 3u);
}

}  // namespace
}  // namespace ganymede::step_protocol
