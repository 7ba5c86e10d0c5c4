#include "launcher/supervisor/going_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/os/files.h"
#include "launcher/keeper/gone_back.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/supervisor/refusal.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A run directory (the current folder) with checkpoints of steps 5, 10 and 15.
class GoingBack : public ::testing::Test {
 protected:
  GoingBack() {
    fs::current_path(folder_.path());
    for (const char* folder : {"ipc", "checkpoint", "checkpoint/rank.0"}) fs::create_directory(folder);
    for (std::uint64_t step : {5u, 10u, 15u}) {
      service::Manifest manifest;
      manifest.step = step;
      manifest.world = manifest.expert_group = 1;
      manifest.optimizer = "adamw";
      manifest.model_hash = "m";
      manifest.dataset = "d";
      manifest.parts = {{0, 1, "h"}};
      service::write_manifest(service::checkpoint_folder, manifest);
    }
    std::ofstream("checkpoint/rank.0/000007.sst") << "values";
    std::ofstream("checkpoint/rank.0/MANIFEST-000004") << "names";
    std::ofstream(service::metrics_file) << "{\"step\": 15}\n";
  }
  ~GoingBack() override { fs::current_path(before_); }

  static std::vector<std::uint64_t> steps(const std::string& folder) {
    std::vector<std::uint64_t> found;
    for (const auto& one : service::read_manifests(folder)) found.push_back(one.step);
    return found;
  }
  static service::Manifests own() { return service::find_manifests(service::checkpoint_folder); }

  test::TemporaryFolder folder_;
  fs::path before_ = fs::current_path();
};

TEST_F(GoingBack, WhatIsNewerIsSetAsideWithTheMetricsAndLosesNothing) {
  EXPECT_THAT(set_newer_aside(own(), 5, "runs/a"), AllOf(HasSubstr("going back to step 5"), HasSubstr("steps 10, 15"),
                                                         HasSubstr("runs/a/checkpoint/abandoned.1;")));
  EXPECT_THAT(steps("checkpoint"), ElementsAre(5));
  EXPECT_THAT(steps("checkpoint/abandoned.1"), ElementsAre(5, 10, 15));
  EXPECT_EQ(os::read_file("checkpoint/abandoned.1/metrics.jsonl"), os::read_file("metrics.jsonl"));
  EXPECT_EQ(os::read_file("checkpoint/abandoned.1/rank.0/MANIFEST-000004"), "names");
  EXPECT_TRUE(fs::equivalent("checkpoint/rank.0/000007.sst", "checkpoint/abandoned.1/rank.0/000007.sst"))
      << "values take no room twice";
  EXPECT_FALSE(fs::equivalent("checkpoint/rank.0/MANIFEST-000004", "checkpoint/abandoned.1/rank.0/MANIFEST-000004"))
      << "what RocksDB changes is each folder's own";
}

TEST_F(GoingBack, NothingIsCopiedWhereNothingIsNewer) {
  EXPECT_EQ(set_newer_aside(own(), 15, "runs/a"), "");
  EXPECT_FALSE(fs::exists("checkpoint/abandoned.1"));
}

TEST_F(GoingBack, DoneAgainAfterAKillItGoesOn) {
  fs::create_directories("checkpoint/abandoned.unfinished/rank.0");  // of a copy that was killed
  std::ofstream("checkpoint/abandoned.unfinished/rank.0/000007.sst") << "val";
  set_newer_aside(own(), 10, "runs/a");
  set_newer_aside(own(), 5, "runs/a");  // as if it had been killed between the two manifests
  EXPECT_THAT(steps("checkpoint"), ElementsAre(5));
  EXPECT_THAT(steps("checkpoint/abandoned.1"), ElementsAre(5, 10, 15));
  EXPECT_THAT(steps("checkpoint/abandoned.2"), ElementsAre(5, 10));
  EXPECT_FALSE(fs::exists("checkpoint/abandoned.unfinished"));
  EXPECT_FALSE(fs::exists("checkpoint/abandoned.2/abandoned.1")) << "copies are not copied";
}

TEST_F(GoingBack, DamagedManifestsOfLaterStepsGoAsWell) {
  std::ofstream("checkpoint/manifest.000000000020.json") << "{";
  EXPECT_THAT(set_newer_aside(own(), 15, "runs/a"), HasSubstr("steps 20"));
  EXPECT_FALSE(fs::exists("checkpoint/manifest.000000000020.json"));
  EXPECT_TRUE(fs::exists("checkpoint/abandoned.1/manifest.000000000020.json"));
}

TEST_F(GoingBack, StepWithoutACheckpointIsRefusedWithThoseThatThereAre) {
  EXPECT_THAT(refusal([] { up_to(own(), 7, "runs/a"); }),
              HasSubstr("--from 7: the run in runs/a has no checkpoint of this step; it can go back to 5, 10, 15."));
  EXPECT_THAT(refusal([] { up_to({}, 7, "runs/a"); }), HasSubstr("has no checkpoint to go back to"));
  std::ofstream("checkpoint/manifest.000000000010.json") << "{";
  EXPECT_THAT(refusal([] { up_to(own(), 10, "runs/a"); }),
              AllOf(HasSubstr("manifest.000000000010.json"), HasSubstr("intact: 5, 15")));
  service::Manifests left = up_to(own(), 5, "runs/a");
  EXPECT_EQ(left.intact.size(), 1u);
  EXPECT_TRUE(left.damaged.empty());
}

TEST_F(GoingBack, IsDoneOnceHoweverOftenTheLauncherIsStartedAgain) {
  EXPECT_EQ(step_to_go_back_to("10"), 10u);
  EXPECT_EQ(step_to_go_back_to("/runs/b@10"), 0u) << "that is another run's";
  EXPECT_EQ(step_to_go_back_to(""), 0u);
  keeper::note_gone_back();
  EXPECT_EQ(step_to_go_back_to("10"), 0u);
  keeper::clear_gone_back();
  EXPECT_EQ(step_to_go_back_to("10"), 10u);
}

TEST_F(GoingBack, RunWithoutStepsBehindIsRefused) {
  config::Config config;
  config.run.steps = 10;
  EXPECT_THAT(refusal([&] { check_steps_behind(10, config); }), HasSubstr("'run.steps' is 10"));
  EXPECT_EQ(refusal([&] { check_steps_behind(9, config); }), "taken");
}

}  // namespace
}  // namespace ganymede::launcher
