#include "launcher/supervisor/run_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/model_spec/model_hash.h"
#include "common/os/files.h"
#include "launcher/supervisor/compatibility.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/supervisor/refusal.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;

/// A run directory (the current folder) with a checkpoint of step 50.
class RunStart : public ::testing::Test {
 protected:
  RunStart() {
    std::filesystem::current_path(folder_.path());
    for (const char* folder : {service::log_folder, service::checkpoint_folder})
      std::filesystem::create_directory(folder);
    config_.run.steps = 100;
    manifest_.step = 50;
    manifest_.world = 1;
    manifest_.optimizer = "adamw";
    manifest_.model_hash = model_spec::model_hash(model_spec::parameters(config_.model));
    manifest_.config = config::effective(config_);
    manifest_.dataset = "d0";
    manifest_.parts = {{0, 1, "h"}};
  }
  ~RunStart() override { std::filesystem::current_path(before_); }

  Start own() const { return {"", manifest_}; }
  Start other() const { return {"/other/checkpoint", manifest_}; }

  std::string check(const Start& start) const {
    return refusal([&] { check_start(start, config_, "runs/a", 70); });
  }

  test::TemporaryFolder folder_;
  std::filesystem::path before_ = std::filesystem::current_path();
  config::Config config_;
  service::Manifest manifest_;
};

TEST_F(RunStart, GoesOnUpToMoreSteps) {
  EXPECT_EQ(check(own()), "taken");
  EXPECT_EQ(check(other()), "taken");
  EXPECT_EQ(check({}), "taken");
}

TEST_F(RunStart, StepsThatTheCheckpointHasAlreadyAreRefused) {
  config_.run.steps = 50;
  EXPECT_EQ(check(own()), "taken") << "the run is complete";
  EXPECT_THAT(check(other()),
              HasSubstr("'run.steps' is 50, but the checkpoint of /other/checkpoint (--from) is of step "
                        "50 already: go on with more, for example --steps 70."));
  config_.run.steps = 49;
  EXPECT_THAT(check(own()), HasSubstr("'run.steps' is 49, but the checkpoint of the run in runs/a is of step 50"));
}

TEST_F(RunStart, AnotherOptimizerOrModelIsRefused) {
  manifest_.optimizer = "muon";
  EXPECT_THAT(check(own()), HasSubstr("'optimizer.name' is adamw"));
  EXPECT_THAT(check(own()), HasSubstr("`ganymede ctl runs/a swap-optimizer adamw` changes the optimizer of a running"));
  EXPECT_THAT(check(other()), HasSubstr("was made with optimizer muon"));
  manifest_.optimizer = "adamw";
  config_.model.hidden *= 2;
  EXPECT_THAT(check(own()), HasSubstr("is of another model"));
  EXPECT_THAT(check(other()), HasSubstr("is of another model"));
}

TEST_F(RunStart, AnotherDatasetIsRefusedInTheSameRunAndSaidInANewOne) {
  config_.data.path = "/d/set";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Terminal shown(ends[1], false);
  auto check = [&](const Start& start, const std::string& dataset) {
    return refusal([&] { check_dataset(start, config_, dataset, "runs/a", shown); });
  };
  EXPECT_EQ(check(own(), "d0"), "taken");
  EXPECT_EQ(check(other(), "d0"), "taken");
  EXPECT_EQ(check({}, "d1"), "taken");
  std::string refused = check(own(), "d1");
  for (const char* part : {"/d/set", "step 50", "runs/a", "hash d1 now, d0 then", "put the old dataset back", "--from"})
    EXPECT_THAT(refused, HasSubstr(part));
  EXPECT_EQ(check(other(), "d1"), "taken");
  std::string told(4096, '\0');
  told.resize(static_cast<std::size_t>(::read(ends[0], told.data(), told.size())));
  EXPECT_EQ(told,
            "the dataset /d/set is another one than that of the checkpoint of step 50 of /other/checkpoint "
            "(--from)\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RunStart, SaysThatFromIsNotUsedOnceTheRunHasACheckpointOfItsOwn) {
  service::write_manifest(service::checkpoint_folder, manifest_);
  auto found = service::find_manifests(service::checkpoint_folder);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Terminal shown(ends[1], false);
  EXPECT_EQ(find_start(found, "", shown).step(), 50u);  // says nothing
  Start start = find_start(found, "/other", shown);
  EXPECT_EQ(start.step(), 50u);
  EXPECT_EQ(start.folder, "");
  std::string told(4096, '\0');
  told.resize(static_cast<std::size_t>(::read(ends[0], told.data(), told.size())));
  EXPECT_EQ(told, "--from /other is not used: this run goes on from its own checkpoint of step 50\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RunStart, WhatTheRunBeganWithIsKnownWithoutItsConfiguration) {
  config_.model.hidden = 80;
  manifest_.config = config::effective(config_);
  service::write_manifest(service::checkpoint_folder, manifest_);
  for (const char* content : {static_cast<const char*>(nullptr), ""}) {
    if (content) std::ofstream(service::config_file) << content;
    auto before = configuration_before(service::find_manifests(service::checkpoint_folder), "runs/a");
    ASSERT_TRUE(before);
    EXPECT_EQ(before->model.hidden, 80);
    EXPECT_THAT(refusal([&] { check_compatible(*before, config::Config(), "runs/a"); }), HasSubstr("model.hidden"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(service::log_folder)) << "nothing is left of reading it";
}

TEST_F(RunStart, AConfigurationThatIsDamagedInItsManifestIsNamed) {
  manifest_.config = "[run";
  service::write_manifest(service::checkpoint_folder, manifest_);
  std::string refused =
      refusal([] { configuration_before(service::find_manifests(service::checkpoint_folder), "runs/a"); });
  EXPECT_THAT(refused, HasSubstr("manifest.000000000050.json"));
}

TEST_F(RunStart, ANewRunBeganWithNothing) {
  EXPECT_FALSE(configuration_before(service::Manifests{}, "runs/a"));
  EXPECT_FALSE(find_start(service::Manifests{}, "", *std::make_unique<Terminal>(-1, false)).manifest);
}

}  // namespace
}  // namespace ganymede::launcher
