#include "launcher/supervisor/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/settings.h"
#include "tests/support/served_segments.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;

/// In a run directory of its own; the workers' part is played by `decide`.
class ChangesTest : public ::testing::Test {
 protected:
  ChangesTest() {
    std::filesystem::current_path(folder_.path());
    config_.parallel.ranks = 2;
    config_.optimizer.lr = 0.5;
    config_.optimizer.hyper = {{"adamw.beta1", 0.9}, {"lion.beta1", 0.8}};
    os::write_file_atomically(service::config_file, config::effective(config_));
    job_.id = 7;
    job_.plugins = {{{"adamw", {"momentum"}, false}, "", 0}};
    cells_.emplace(Cells::create(config_, job_, {0, 2}, 0, keeper_, [](std::uint64_t, std::uint64_t) {}));
    epochs_.emplace(config_, job_);
    changes_.emplace(config_, job_, *cells_, *epochs_);
  }
  ~ChangesTest() override { std::filesystem::current_path(before_); }

  void decide(std::uint64_t step, std::uint64_t number, std::uint64_t since) {
    auto& block = *cells_->control(0).block;
    auto& record = block.record_of(step);
    record = {};
    record.step = step;
    record.change_number = number;
    record.change_step = since;
    record.checksum = record.compute_checksum();
    block.decided_step = step;
  }
  std::string refusal(const std::vector<Changes::Value>& values, ExitCode code, bool ending = false) {
    try {
      changes_->order(values, ending);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_EQ(cells_->prepared_change().number, 0u);
      return error.what();
    }
    return "not refused";
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  config::Config config_;
  service::Job job_;
  test::ServedSegments served_{std::uint64_t{1} << 40};
  shm::KeeperClient keeper_{served_.path()};
  std::optional<Cells> cells_;
  std::optional<Epochs> epochs_;
  std::optional<Changes> changes_;
};

TEST_F(ChangesTest, OrderIsPreparedOnAllRanksAndInForceWhenAStepFollowsIt) {
  EXPECT_FALSE(changes_->prepared());
  ChangeState ordered = changes_->order({{"optimizer.lr", 0.25}, {"optimizer.adamw.beta1", 0.8}}, false);
  EXPECT_EQ(ordered.number, 1u);
  EXPECT_FALSE(ordered.in_force);
  for (int rank : {0, 1}) EXPECT_EQ(step_protocol::offered_setting(*cells_->control(rank).block).hyper[0], 0.8);
  ASSERT_TRUE(changes_->prepared());
  EXPECT_EQ(changes_->prepared()->lr, 0.25);
  EXPECT_TRUE(changes_->note().empty());
  decide(3, 1, 3);
  ASSERT_EQ(changes_->note().size(), 1u);
  EXPECT_TRUE(changes_->note().empty());
  ChangeState state = changes_->state(1);
  EXPECT_TRUE(state.in_force);
  EXPECT_EQ(state.describe(), "from step 3 on: optimizer.adamw.beta1 0.9 → 0.8, optimizer.lr 0.5 → 0.25");
  config::Config kept = config::load(service::config_file, {});
  EXPECT_EQ(kept.optimizer.lr, 0.25);
  EXPECT_EQ(kept.optimizer.hyper.at("adamw.beta1"), 0.8);
  EXPECT_EQ(kept.optimizer.hyper.at("lion.beta1"), 0.8);
  EXPECT_EQ(kept.optimizer.weight_decay, config_.optimizer.weight_decay);
}

TEST_F(ChangesTest, SameOrderAgainIsTheSameChange) {
  changes_->order({{"optimizer.lr", 0.25}}, false);
  EXPECT_EQ(changes_->order({{"optimizer.lr", 0.25}}, false).number, 1u);
  decide(3, 1, 2);
  EXPECT_EQ(changes_->order({{"optimizer.lr", 0.25}}, true).number, 1u);
  EXPECT_EQ(cells_->prepared_change().number, 1u);
  EXPECT_EQ(changes_->order({{"optimizer.clip_norm", config_.optimizer.clip_norm}}, false).number, 0u)
      << "in force, but not by this change";
}

TEST_F(ChangesTest, OneChangeIsUnderWayAtATime) {
  changes_->order({{"optimizer.lr", 0.25}}, false);
  try {
    changes_->order({{"optimizer.lr", 0.125}}, false);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Change 1 (optimizer.lr 0.5 → 0.25) is still under way"));
  }
  decide(3, 1, 3);
  EXPECT_EQ(changes_->order({{"optimizer.lr", 0.125}}, false).number, 2u);
}

TEST_F(ChangesTest, WhatCannotBeIsRefusedAndChangesNothing) {
  EXPECT_THAT(refusal({{"model.hidden", 8}}, ExitCode::usage),
              HasSubstr("'model.hidden' cannot change while the run runs; those that can: optimizer.adamw.beta1, "
                        "optimizer.clip_norm, optimizer.lr, optimizer.weight_decay."));
  EXPECT_THAT(refusal({{"optimizer.lion.beta1", 0.7}}, ExitCode::usage), HasSubstr("cannot change"));
  EXPECT_THAT(refusal({{"optimizer.weight_decay", 0}, {"optimizer.lr", -1}}, ExitCode::usage),
              HasSubstr("key 'optimizer.lr' is -1, but has to be 0 to 1000"));
  EXPECT_THAT(refusal({{"optimizer.lr", 1.0 / 0.0}}, ExitCode::usage), HasSubstr("has to be"));
  EXPECT_THAT(refusal({}, ExitCode::usage), HasSubstr("at least one key"));
  EXPECT_THAT(refusal({{"optimizer.lr", 0.25}}, ExitCode::failed, true), HasSubstr("is ending"));
  EXPECT_THROW(changes_->state(1), Error);
}

TEST_F(ChangesTest, LauncherThatDiedBeforeItWroteTheFilesIsMadeGoodByTheNext) {
  changes_->order({{"optimizer.lr", 0.25}}, false);
  decide(3, 1, 3);
  Changes next(config_, job_, *cells_, *epochs_);
  EXPECT_EQ(next.note().size(), 1u);
  EXPECT_EQ(read_changes().given.at("optimizer.lr"), 0.5);
  EXPECT_EQ(config::load(service::config_file, {}).optimizer.lr, 0.25);
  EXPECT_TRUE(Changes(config_, job_, *cells_, *epochs_).note().empty());
}

TEST_F(ChangesTest, LaterChangesKeepWhatTheRecipeSaid) {
  changes_->order({{"optimizer.lr", 0.25}}, false);
  decide(3, 1, 3);
  changes_->note();
  config::Config resumed = config::load(service::config_file, {});
  Epochs epochs(resumed, job_);
  Changes next(config_, job_, *cells_, epochs);
  next.order({{"optimizer.lr", 0.125}}, false);
  decide(4, 2, 4);
  ASSERT_EQ(next.note().size(), 1u);
  EXPECT_EQ(read_changes().given.at("optimizer.lr"), 0.5);
  EXPECT_EQ(read_changes().now.at("optimizer.lr"), 0.125);
}

TEST_F(ChangesTest, StartWithTheSameRecipeKeepsChangesAndOneThatSaysOtherwiseHasItsWay) {
  write_changes({.job = 7, .number = 1, .given = {{"optimizer.lr", 0.5}}, .now = {{"optimizer.lr", 0.25}}});
  KeptChanges kept = read_changes();
  config::Config same = config_;
  EXPECT_EQ(keep_changes(kept, same), "kept from `ganymede ctl set`: optimizer.lr 0.5 → 0.25");
  EXPECT_EQ(same.optimizer.lr, 0.25);
  config::Config other = config_;
  other.optimizer.lr = 0.75;
  EXPECT_EQ(keep_changes(kept, other), "");
  EXPECT_EQ(other.optimizer.lr, 0.75);
  EXPECT_TRUE(kept.given.empty());
}

TEST_F(ChangesTest, WhatTheCommandLineSetsAnewIsNotKeptEvenWithTheRecipesOldValue) {
  KeptChanges kept;
  note_change(kept, "optimizer.lr", 0.5);
  kept.now["optimizer.lr"] = 0.25;
  KeptChanges of_the_same_command = kept;
  of_the_same_command.said = {"optimizer.lr"};
  config::Config config = config_;
  EXPECT_EQ(keep_changes(kept, config, {"optimizer.lr"}), "");
  EXPECT_EQ(config.optimizer.lr, 0.5);
  EXPECT_TRUE(kept.given.empty());
  EXPECT_NE(keep_changes(of_the_same_command, config, {"optimizer.lr"}), "");
  EXPECT_EQ(config.optimizer.lr, 0.25);
}

TEST_F(ChangesTest, KnowsWhichKeysTheCommandLineHasSetWhenTheyWereChanged) {
  Changes changes(config_, job_, *cells_, *epochs_, {"optimizer.lr", "run.steps"});
  changes.order({{"optimizer.lr", 0.25}, {"optimizer.adamw.beta1", 0.8}}, false);
  decide(3, 1, 3);
  changes.note();
  EXPECT_EQ(read_changes().said, std::set<std::string>{"optimizer.lr"});
}

TEST_F(ChangesTest, DamagedFileIsAnErrorThatNamesItAndTheWayOutAlone) {
  for (const char* content : {"{\"job\": 7", "{\"job\": \"x\"}", "", "[]"}) {
    std::ofstream(changes_file) << content;
    try {
      read_changes();
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr("/changes.json, which has the changes"));
      EXPECT_THAT(error.what(), HasSubstr("remove it to go on with the recipe's values"));
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("json.exception")));
    }
  }
}

}  // namespace
}  // namespace ganymede::launcher
