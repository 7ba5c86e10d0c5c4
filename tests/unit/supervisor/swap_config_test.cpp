#include "launcher/supervisor/swap_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/error.h"
#include "launcher/supervisor/kept_changes.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

class SwapConfig : public ::testing::Test {
 protected:
  SwapConfig() {
    std::filesystem::current_path(folder_.path());
    std::filesystem::create_directory("logs");
  }
  ~SwapConfig() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(SwapConfig, KeysAreThoseOfTheOptimizerOfItsPluginAndOfTheSwap) {
  EXPECT_EQ(swap_setting("lr=2e-2", "muon"), "optimizer.lr=2e-2");
  EXPECT_EQ(swap_setting("optimizer.lr=2e-2", "muon"), "optimizer.lr=2e-2");
  EXPECT_EQ(swap_setting("momentum=0.9", "muon"), "optimizer.muon.momentum=0.9");
  EXPECT_EQ(swap_setting("adamw.beta1=0.8", "muon"), "optimizer.adamw.beta1=0.8");
  EXPECT_EQ(swap_setting("group.rest.lr=1e-3", "muon"), "optimizer.group.rest.lr=1e-3");
  EXPECT_EQ(swap_setting("warm_steps=5", "muon"), "swap.warm_steps=5");
  for (const char* wrong : {"lr", "=1", "threads=3", "optimizer.name=lion", "optimizer.policy=stop"})
    EXPECT_THROW(swap_setting(wrong, "muon"), Error) << wrong;
}

TEST_F(SwapConfig, KeysOfOtherSectionsAreRefusedByTheirName) {
  for (const char* key : {"run.steps", "data.seq_len", "newton_schulz.steps", "swap.other"}) {
    try {
      swap_setting(std::string(key) + "=5", "muon");
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), testing::StartsWith(std::string("--set ") + key + ": only keys of [optimizer]"));
    }
  }
}

TEST_F(SwapConfig, AFaultNamesWhatWasSetAsItWasWritten) {
  config::Config in_force;
  in_force.optimizer.schedule = config::Schedule::cosine;
  in_force.optimizer.warmup_steps = 20;
  auto fault = [&](const std::vector<std::string>& settings) {
    try {
      swapped_config(in_force, "muon", settings, "logs/swap.7.toml");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("swap.7.toml")));
      EXPECT_FALSE(std::filesystem::exists("logs/swap.7.toml"));
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(fault({"lr=-1"}), testing::StartsWith("--set lr=-1: "));
  EXPECT_THAT(fault({"lr=0.1", "decay_steps=5"}),
              testing::StartsWith("--set lr=0.1 --set decay_steps=5: key 'optimizer.warmup_steps' is 20"));
  in_force.optimizer.decay_steps = 5;
  EXPECT_THAT(fault({}), testing::StartsWith("the configuration in force: key 'optimizer.warmup_steps' is 20"));
}

TEST_F(SwapConfig, OfAnotherOptimizerKeepsAllButTheGroupOfTheRest) {
  config::Config in_force;
  in_force.optimizer.hyper = {{"adamw.beta2", 0.95}};
  in_force.optimizer.groups["rest"].optimizer = "lion";
  in_force.swap.warm_steps = 7;
  config::Config swapped = swapped_config(in_force, "muon", {"lr=0.02", "momentum=0.9"}, "scratch.toml");
  EXPECT_EQ(swapped.optimizer.name, "muon");
  EXPECT_EQ(swapped.optimizer.lr, 0.02);
  EXPECT_EQ(swapped.optimizer.hyper.at("muon.momentum"), 0.9);
  EXPECT_EQ(swapped.optimizer.hyper.at("adamw.beta2"), 0.95);
  EXPECT_TRUE(swapped.optimizer.groups.empty());
  EXPECT_EQ(swapped.swap.warm_steps, 7) << "the recipe's, unless it is set";
  EXPECT_EQ(other_difference(in_force, swapped), "");
  EXPECT_FALSE(std::filesystem::exists("scratch.toml"));
  add_rest(swapped, in_force, {{"muon", {"momentum"}, true}});
  EXPECT_EQ(swapped.optimizer.groups.at("rest").lr, in_force.optimizer.lr);

  config::Config again = swapped_config(in_force, "adamw", {}, "scratch.toml");
  EXPECT_TRUE(again.optimizer.groups.contains("rest"));
  again.data.seq_len += 1;
  EXPECT_EQ(other_difference(in_force, again), "data.seq_len");
}

TEST_F(SwapConfig, ARunThatGoesOnHasTheOptimizerOfItsCheckpointUnlessTheRecipeSaysSomethingNew) {
  config::Config recipe, checkpoint;
  recipe.optimizer.threads = 3;
  checkpoint.optimizer.name = "lion";
  checkpoint.optimizer.lr = 0.25;
  checkpoint.optimizer.weight_decay = 0.5;
  KeptChanges changes;
  note_swap(changes, 1, "lion", recipe);
  KeptChanges kept = changes;
  config::Config same = recipe;
  EXPECT_THAT(keep_swap(kept, &checkpoint, same), testing::HasSubstr("adamw → lion"));
  EXPECT_EQ(same.optimizer.name, "lion");
  EXPECT_EQ(same.optimizer.lr, 0.25);
  EXPECT_EQ(same.optimizer.threads, 3);
  EXPECT_FALSE(kept.recipe.empty());

  kept = changes;
  config::Config other_rate = recipe;
  other_rate.optimizer.lr = 0.125;
  keep_swap(kept, &checkpoint, other_rate);
  EXPECT_EQ(other_rate.optimizer.name, "lion");
  EXPECT_EQ(other_rate.optimizer.lr, 0.125);
  EXPECT_EQ(other_rate.optimizer.weight_decay, 0.5);

  kept = changes;
  config::Config other_name = recipe;
  other_name.optimizer.name = "sgd";
  EXPECT_EQ(keep_swap(kept, &checkpoint, other_name), "");
  EXPECT_EQ(other_name.optimizer.name, "sgd");
  EXPECT_TRUE(kept.recipe.empty());
}

TEST_F(SwapConfig, WhatTheCommandLineSetsAnewWinsEvenWithTheRecipesOldValueAndTheSameCommandKeeps) {
  config::Config recipe, checkpoint;
  recipe.optimizer.lr = 0.125;
  checkpoint.optimizer.name = "lion";
  checkpoint.optimizer.lr = 0.25;
  checkpoint.optimizer.weight_decay = 0.5;
  auto lr_of = [&](const std::set<std::string>& then, const std::set<std::string>& said) {
    KeptChanges changes;
    note_swap(changes, 1, "lion", recipe, then);
    write_changes(changes);
    KeptChanges kept = read_changes();
    config::Config now = recipe;
    keep_swap(kept, &checkpoint, now, said);
    EXPECT_EQ(now.optimizer.name, "lion");
    EXPECT_EQ(now.optimizer.weight_decay, 0.5);
    return now.optimizer.lr;
  };
  EXPECT_EQ(lr_of({}, {"optimizer.lr"}), 0.125);
  EXPECT_EQ(lr_of({}, {"optimizer.clip_norm", "data.path"}), 0.25);
  EXPECT_EQ(lr_of({"optimizer.lr"}, {"optimizer.lr"}), 0.25) << "the command is the same";
  EXPECT_EQ(lr_of({"optimizer.lr"}, {}), 0.25);

  KeptChanges changes;
  note_swap(changes, 1, "lion", recipe, {"optimizer.lr"});
  config::Config now = recipe;
  EXPECT_THAT(keep_swap(changes, &checkpoint, now, {"optimizer.lr", "optimizer.clip_norm"}),
              testing::EndsWith("[optimizer] of the checkpoint, not --set optimizer.lr as before it"));
  now = recipe;
  EXPECT_EQ(keep_swap(changes, &checkpoint, now, {"optimizer.name"}), "");
  EXPECT_EQ(now.optimizer.name, "adamw");
}

TEST_F(SwapConfig, ASwapThatTheCheckpointIsOlderThanIsSaidToBeLostWithWhatWasSetAfterIt) {
  config::Config recipe, muon;
  muon.optimizer.name = "muon";
  KeptChanges changes;
  note_swap(changes, 2, "lion", recipe);
  changes.given = {{"optimizer.lr", recipe.optimizer.lr}};
  changes.now = {{"optimizer.lr", 3e-5}};
  for (const config::Config* checkpoint : {static_cast<const config::Config*>(&recipe), &std::as_const(muon)}) {
    KeptChanges kept = changes;
    config::Config now = recipe;
    std::string line = keep_swap(kept, checkpoint, now);
    EXPECT_THAT(line, testing::HasSubstr("the swap to lion is in no checkpoint: " + checkpoint->optimizer.name));
    EXPECT_EQ(line.find("kept from") != std::string::npos, checkpoint == &muon) << line;
    EXPECT_EQ(now.optimizer.name, checkpoint->optimizer.name);
    EXPECT_EQ(keep_changes(kept, now), "");
    EXPECT_EQ(now.optimizer.lr, recipe.optimizer.lr);
    EXPECT_EQ(kept.optimizer, checkpoint->optimizer.name);
  }
  KeptChanges kept = changes;
  config::Config now = recipe;
  EXPECT_THAT(keep_swap(kept, nullptr, now), testing::HasSubstr("in no checkpoint: adamw goes on"));
  EXPECT_EQ(keep_changes(kept, now), "");
}

}  // namespace
}  // namespace ganymede::launcher
