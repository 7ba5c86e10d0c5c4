#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "launcher/supervisor/compatibility.h"
#include "launcher/supervisor/dataset_packing.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;

TEST(Compatibility, WhatMayChangeBetweenTwoStartsIsTaken) {
  config::Config before, now;
  now.run.steps = before.run.steps + 100;
  now.parallel.ranks = 2;
  now.checkpoint.every_steps = 7;
  now.validation.every_steps = 3;
  now.launch.restart_budget = 1;
  now.optimizer.lr = 1e-4;
  EXPECT_NO_THROW(check_compatible(before, now, "/r"));
}

struct Change {
  const char* key;
  void (*apply)(config::Config&);
  const char* before;
  const char* now;
};

class RefusedChange : public ::testing::TestWithParam<Change> {};

TEST_P(RefusedChange, NamesKeyOldAndNewValue) {
  config::Config before, now;
  GetParam().apply(now);
  try {
    check_compatible(before, now, "/r/run");
    FAIL() << GetParam().key << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const char* part : {GetParam().key, GetParam().before, GetParam().now, "/r/run"})
      EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(Compatibility, ARefusedOptimizerNamesTheWayToChangeIt) {
  config::Config before, now;
  now.optimizer.name = "muon";
  try {
    check_compatible(before, now, "runs/a");
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("`ganymede ctl runs/a swap-optimizer muon` changes it while the job runs"));
  }
}

TEST(Compatibility, WhoUpdatesAGroupIsFixedAndHowFastIsNot) {
  config::Config before;
  before.optimizer.groups["a"] = {{"*norm.weight"}, "sgd", -1, -1};
  config::Config now = before;
  now.optimizer.groups["a"].lr = 0.5;
  EXPECT_NO_THROW(check_compatible(before, now, "/r"));
  now.optimizer.groups["a"].match = {"*.bias"};
  EXPECT_THROW(check_compatible(before, now, "/r"), Error);
  now = before;
  now.optimizer.groups["a"].optimizer = "adamw";
  EXPECT_THROW(check_compatible(before, now, "/r"), Error);
}

/// A group that is left away or added may change who updates a parameter without a key that differs.
TEST(Compatibility, NoParameterGetsAnotherOptimizer) {
  config::Config before, now;
  before.optimizer.groups["q"] = {{"*.q_proj.weight"}, "lion", -1, -1};
  std::vector<placement::OptimizerFacts> facts = builtin_facts();
  EXPECT_NO_THROW(check_who_updates(before, facts, before, facts, "/r"));
  EXPECT_NO_THROW(check_who_updates(now, facts, now, facts, "/r"));
  for (bool added : {false, true}) {
    try {
      check_who_updates(added ? now : before, facts, added ? before : now, facts, "/r");
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr("self_attn.q_proj.weight was updated by optimizer"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Compatibility, RefusedChange,
    ::testing::Values(Change{"model.hidden", [](config::Config& c) { c.model.hidden = 80; }, "64", "80"},
                      Change{"model.sinks", [](config::Config& c) { c.model.sinks = false; }, "true", "false"},
                      Change{"run.seed", [](config::Config& c) { c.run.seed = 9; }, "1", "9"},
                      Change{"data.path", [](config::Config& c) { c.data.path = "/d"; }, "\"\"", "\"/d\""},
                      Change{"data.rows_per_step", [](config::Config& c) { c.data.rows_per_step = 8; }, "4", "8"},
                      Change{"optimizer.name", [](config::Config& c) { c.optimizer.name = "muon"; }, "adamw", "muon"}));

TEST(ThreadCounts, AreSharedBetweenTheRanksOfANode) {
  config::Config config;
  config.parallel.ranks = 3;
  resolve_threads(config, nullptr, 26, config.parallel.ranks);
  EXPECT_EQ(config.compute.threads, 8);
  EXPECT_EQ(config.optimizer.threads, 2);
}

TEST(ThreadCounts, AreAtLeastOne) {
  config::Config config;
  config.parallel.ranks = 4;
  resolve_threads(config, nullptr, 2, config.parallel.ranks);
  EXPECT_EQ(config.compute.threads, 1);
  EXPECT_EQ(config.optimizer.threads, 1);
}

TEST(Ctas, OfBackendsThatTakeNoneAreRefusedToBeCapped) {
  config::Config config;
  EXPECT_NO_THROW(check_ctas(config));
  using config::MaxCtas;
  const std::vector<std::pair<std::string, int MaxCtas::*>> keys = {
      {"gather", &MaxCtas::gather},     {"regather", &MaxCtas::regather}, {"reduce", &MaxCtas::reduce},
      {"replicas", &MaxCtas::replicas}, {"exchange", &MaxCtas::exchange}, {"matrices", &MaxCtas::matrices}};
  for (const auto& [name, member] : keys) {
    std::string key = "collectives.max_ctas." + name;
    config::Config capped;
    capped.collectives.max_ctas.*member = 4;
    try {
      check_ctas(capped);
      ADD_FAILURE() << key << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      for (const std::string& part : {key, std::string("is 4"), std::string("leave it 0")})
        EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

TEST(ThreadCounts, OfAWorldOfTheSameSizeAreKept) {
  config::Config before, now;
  before.parallel.ranks = now.parallel.ranks = 2;
  before.compute.threads = 5;
  before.optimizer.threads = 3;
  resolve_threads(now, &before, 64, now.parallel.ranks);
  EXPECT_EQ(now.compute.threads, 5);
  EXPECT_EQ(now.optimizer.threads, 3);
  config::Config other;
  other.parallel.ranks = 4;
  resolve_threads(other, &before, 64, other.parallel.ranks);
  EXPECT_EQ(other.compute.threads, 16);
}

TEST(ThreadCounts, AboveTheCoresAreRefusedWithTheirNumber) {
  config::Config config;
  config.parallel.ranks = 2;  // ranks may share cores; the threads of one may not
  config.compute.threads = config.optimizer.threads = 4;
  EXPECT_NO_THROW(check_threads(config, 4));
  auto refused = [&](const char* key) {
    try {
      check_threads(config, 3);
      ADD_FAILURE() << key << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      for (const char* part : {key, "is 4", "only 3 cores"}) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused("compute.threads");
  config.compute.threads = 3;
  refused("optimizer.threads");
}

TEST(ThreadCounts, OfAllRanksTogetherAboveTheCoresAreSaid) {
  config::Config config;
  config.compute.threads = 2;
  EXPECT_EQ(shared_cores(config, 4, 2), "");
  EXPECT_EQ(shared_cores(config, 3, 2),
            "2 ranks of 2 threads each share 3 cores; fewer are faster: --set compute.threads=1");
  config.compute.threads = 1;
  EXPECT_EQ(shared_cores(config, 2, 4), "");  // fewer there are not
}

TEST(ThreadCounts, GivenInTheRecipeWin) {
  config::Config before, now;
  before.compute.threads = 5;
  now.compute.threads = 7;
  resolve_threads(now, &before, 64, now.parallel.ranks);
  EXPECT_EQ(now.compute.threads, 7);
}

TEST(Validation, TakesNoMoreRowsThanAreHeldOut) {
  config::Config config;
  config.validation.every_steps = 10;
  config.validation.rows = 64;
  EXPECT_EQ(limit_validation(config, 64), "");
  EXPECT_EQ(config.validation.rows, 64);
  EXPECT_EQ(limit_validation(config, 37),
            "validation uses all 37 held-out rows of the dataset; validation.rows asks for 64");
  EXPECT_EQ(config.validation.rows, 37);
}

TEST(Validation, WithoutHeldOutRowsIsRefusedUnlessItIsNotWanted) {
  config::Config config;
  config.data.path = "/d";
  config.validation.every_steps = 0;
  int rows = config.validation.rows;
  EXPECT_EQ(limit_validation(config, 0), "");
  EXPECT_EQ(config.validation.rows, rows);
  config.validation.every_steps = 10;
  try {
    limit_validation(config, 0);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("/d has no held-out rows, but validation.every_steps is 10"));
  }
}

TEST(Continuation, KeysThatChangedAreSaid) {
  config::Config before, now;
  EXPECT_EQ(changed_keys(before, now), "");
  before.optimizer.lr = 0.003;
  now.optimizer.lr = 0.002;
  now.parallel.ranks = before.parallel.ranks + 1;
  now.run.steps = before.run.steps + 5;
  EXPECT_EQ(changed_keys(before, now), "parallel.ranks 1 → 2, optimizer.lr 0.003 → 0.002");
}

}  // namespace
}  // namespace ganymede::launcher
