#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/os/files.h"
#include "tests/support/process_wait.h"
#include "tests/support/tiny_dataset.h"
#include "tests/support/training_run.h"

/// Bad input of every kind: one clear error, the right exit code, nothing lost, no process left.
namespace ganymede::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class BadInput : public ::testing::Test {
 protected:
  /// The run ends with `code` and says all of `parts` on one line; nothing is left.
  void expect_refused(TrainingRun& run, int code, const std::vector<std::string>& parts,
                      const std::vector<std::string>& arguments = {}) {
    EXPECT_EQ(run.train(arguments), code) << run.output();
    std::istringstream lines(run.output());
    bool found = false;
    for (std::string line; std::getline(lines, line);)
      found = found || std::all_of(parts.begin(), parts.end(),
                                   [&](const auto& part) { return line.find(part) != std::string::npos; });
    EXPECT_TRUE(found) << "not on one line of:\n" << run.output();
    wait_until([&] { return run.leftovers().empty(); }, 5, "no process is left");
  }

  std::string write(const std::string& name, const std::string& text) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  /// A copy of the tiny dataset that a test may break.
  std::string dataset_copy() {
    std::string copy = folder_.path() + "/dataset";
    fs::copy(tiny_dataset(), copy, fs::copy_options::recursive);
    return copy;
  }

  TemporaryFolder folder_;
};

TEST_F(BadInput, MissingRecipe) {
  TrainingRun run;
  run.recipe = folder_.path() + "/none.toml";
  expect_refused(run, 2, {"none.toml", "does not exist"});
  EXPECT_FALSE(fs::exists(run.folder())) << "nothing is made";
}

TEST_F(BadInput, BrokenToml) {
  TrainingRun run;
  run.recipe = write("broken.toml", "[run]\nsteps = 5\nseed = = 3\n");
  expect_refused(run, 2, {"broken.toml:3"});
  EXPECT_FALSE(fs::exists(run.folder()));
}

TEST_F(BadInput, WrongTypeNamesFileLineAndKey) {
  TrainingRun run;
  run.recipe = write("type.toml", "[run]\nsteps = \"many\"\n");
  expect_refused(run, 2, {"type.toml:2", "run.steps"});
}

TEST_F(BadInput, UnknownKeyNamesTheNearestKnownOne) {
  TrainingRun run({"model.hiden=64"});
  expect_refused(run, 2, {"model.hiden", "model.hidden"});
}

TEST_F(BadInput, RowsThatTheRanksCannotShare) {
  TrainingRun run({"parallel.ranks=5"});
  expect_refused(run, 2, {"data.rows_per_step", "12", "10"});
}

TEST_F(BadInput, UnknownOptimizer) {
  TrainingRun run({"optimizer.name=sophia"});
  expect_refused(run, 2, {"sophia", "adamw"});
  EXPECT_FALSE(fs::exists(run.folder() + "/config.toml")) << "a refused configuration is not kept";
}

TEST_F(BadInput, DatasetTruncatedByOneByte) {
  std::string dataset = dataset_copy();
  for (const auto& entry : fs::directory_iterator(dataset)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".bin") continue;
    std::string name = entry.path().filename().string();
    fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
    TrainingRun run({"run.steps=2"});
    run.data = dataset;
    EXPECT_NE(run.train(), 0) << name;
    EXPECT_THAT(run.output(), HasSubstr(name));
    EXPECT_TRUE(run.leftovers().empty());
    fs::remove_all(dataset);
    dataset = dataset_copy();
  }
}

TEST_F(BadInput, DatasetThatIsMissingWithoutSources) {
  TrainingRun run({"data.sources=[]"});
  run.data = folder_.path() + "/nothing";
  expect_refused(run, 2, {"nothing", "data.sources"});
}

TEST_F(BadInput, SourceThatIsMissingIsSaidOnce) {
  TrainingRun run({"data.sources=[\"/no/such/sources\"]"});
  run.data = folder_.path() + "/nothing";
  expect_refused(run, 2, {"/no/such/sources", "does not exist"});
  EXPECT_THAT(run.output(), Not(HasSubstr("could not be packed")));
}

TEST_F(BadInput, DatasetOfAnotherRowLength) {
  TrainingRun run({"data.seq_len=128"});
  EXPECT_NE(run.train(), 0);
  EXPECT_THAT(run.output(), HasSubstr("128"));
  EXPECT_THAT(run.output(), HasSubstr("64"));
  EXPECT_TRUE(run.leftovers().empty());
}

TEST_F(BadInput, TooLittleMemoryIsRefusedWithNumbers) {
  TrainingRun run({"launch.host_memory_limit_gib=0.1"});
  expect_refused(run, 1, {"102 MiB", "worker process", "launch.host_memory_limit_gib"});
  EXPECT_FALSE(fs::exists(run.folder() + "/config.toml")) << "a refused configuration is not kept";
}

TEST_F(BadInput, ModelThatNoMemoryHoldsIsRefusedBeforeItIsLaidOut) {
  TrainingRun run({"model.hidden=16777216", "model.ffn=16777216", "model.vocabulary=16777216"});
  expect_refused(run, 1, {"of host memory", "parameters", "smaller model"});
}

TEST_F(BadInput, WhatNoMemoryHoldsIsRefusedWithTheKeysThatMatter) {
  struct Case {
    std::vector<std::string> settings, parts;
  };
  const Case cases[] = {
      {{"parallel.ranks=65536", "data.rows_per_step=65536"}, {"the programs of all ranks", "parallel.ranks"}},
      {{"data.rows_per_step=64", "data.seq_len=16777216", "model.hidden=16777216", "model.expert_ffn=1", "model.ffn=1",
        "model.heads=1", "model.kv_heads_sliding=1"},
       {"the inputs of all layers", "data.seq_len"}},
      {{"data.slots=64", "data.rows_per_step=5000", "data.seq_len=32768", "model.hidden=16"},
       {"the batches", "data.rows_per_step"}},
      {{"compute.loss_chunk=16777216", "model.vocabulary=1000000"}, {"one layer", "compute.loss_chunk"}},
  };
  for (const Case& c : cases) {
    TrainingRun run(c.settings);
    expect_refused(run, 1, c.parts);
  }
}

TEST_F(BadInput, MoreThreadsThanCores) {
  TrainingRun run({"compute.threads=1024"});
  expect_refused(run, 2, {"compute.threads", "1024", "core"});
  EXPECT_FALSE(fs::exists(run.folder() + "/config.toml")) << "a refused configuration is not kept";
}

TEST_F(BadInput, PluginFolderThatIsMissing) {
  TrainingRun run({"optimizer.plugin_folder=/nowhere"});
  expect_refused(run, 2, {"/nowhere", "optimizer.plugin_folder"});
}

TEST_F(BadInput, SocketPathInUse) {
  TrainingRun run({"run.steps=2"});
  fs::create_directories(run.folder() + "/ipc");
  std::ofstream(run.folder() + "/ipc/launcher.sock") << "not a socket";
  EXPECT_EQ(run.train(), 1);
  EXPECT_THAT(run.output(), HasSubstr("launcher.sock"));
  EXPECT_TRUE(run.leftovers().empty());
}

TEST_F(BadInput, RunDirectoryThatIsAFile) {
  TrainingRun run;
  std::ofstream(run.folder()) << "a file";
  EXPECT_EQ(run.train(), 1);
  EXPECT_THAT(run.output(), HasSubstr(run.folder()));
}

/// A run with checkpoints of steps 2 and 4 whose files a test breaks.
class BadCheckpoint : public BadInput {
 protected:
  BadCheckpoint() {
    EXPECT_EQ(run_.train(), 0) << run_.output();
    checkpoints_ = run_.folder() + "/checkpoint";
  }
  std::string newest_manifest() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(checkpoints_))
      if (entry.path().filename().string().starts_with("manifest.")) all.push_back(entry.path().string());
    std::sort(all.begin(), all.end());
    return all.empty() ? "" : all.back();
  }
  TrainingRun run_{{"run.steps=4", "checkpoint.every_steps=2"}};
  std::string checkpoints_;
};

TEST_F(BadCheckpoint, DamagedManifestIsNamedAndTheRunGoesOnFromTheOneBefore) {
  std::string damaged = newest_manifest();
  std::ofstream(damaged) << "{\"step\": 4";
  EXPECT_EQ(run_.train(), 0) << run_.output();
  EXPECT_THAT(run_.output(),
              HasSubstr("the checkpoint of step 4 is passed over: checkpoint/manifest.000000000004.json"));
  EXPECT_THAT(run_.output(), HasSubstr("going on from the checkpoint of step 2"));
  EXPECT_EQ(run_.last_step(), 4u);
  EXPECT_EQ(run_.ganymede({"checkpoint", "verify", run_.folder(), "--step", "4"}).exit_code, 0) << "it was made again";
}

TEST_F(BadCheckpoint, RunWhoseManifestsAreAllDamagedDoesNotBeginAnew) {
  for (const auto& entry : fs::directory_iterator(checkpoints_))
    if (entry.path().filename().string().starts_with("manifest.")) std::ofstream(entry.path()) << "{";
  expect_refused(run_, 1, {"no intact checkpoint", "manifest.000000000004.json"}, {"--steps", "6"});
  EXPECT_EQ(run_.last_step(), 4u) << "its metrics are still there";
}

TEST_F(BadCheckpoint, DamagedConfigurationOfTheRunNamesTheWayOut) {
  std::ofstream(run_.folder() + "/config.toml") << "[run\n";
  expect_refused(run_, 2, {"config.toml", "remove the file"}, {"--steps", "6"});
}

TEST_F(BadCheckpoint, DamagedPartIsNamedAndNothingIsLost) {
  // One byte in the middle of every table of the part.
  for (const auto& entry : fs::recursive_directory_iterator(checkpoints_)) {
    if (entry.path().extension() != ".sst") continue;
    std::string bytes = os::read_file(entry.path().string());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
    std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
  EXPECT_EQ(run_.train({"--steps", "6"}), 1);
  EXPECT_THAT(run_.output(), HasSubstr("checkpoint"));
  EXPECT_TRUE(run_.leftovers().empty());
  EXPECT_FALSE(newest_manifest().empty());
}

TEST_F(BadCheckpoint, HalfWrittenCheckpointCountsAsNone) {
  fs::remove(newest_manifest());  // what a kill between the parts and the manifest leaves
  EXPECT_EQ(run_.train({"--steps", "6"}), 0) << run_.output();
  EXPECT_THAT(run_.output(), HasSubstr("going on from the checkpoint of step 2"));
  EXPECT_EQ(run_.last_step(), 6u);
}

TEST_F(BadCheckpoint, WhatIsNoDatasetIsSaidOnce) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", run_.folder(), "--data", "/etc"},
                                                  {"generate", run_.folder(), "--prompt", "a", "--data", "/etc"}}) {
    auto finished = run_.ganymede(command);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.output, HasSubstr("/etc is not a packed dataset"));
    EXPECT_EQ(std::count(finished.output.begin(), finished.output.end(), '\n'), 1) << finished.output;
  }
}

/// A small file system that fills up.
class FullDisk : public BadInput {
 protected:
  bool mount(const std::string& size) {
    disk_ = folder_.path() + "/disk";
    fs::create_directory(disk_);
    mounted_ = geteuid() == 0 && ::mount("none", disk_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    return mounted_;
  }
  ~FullDisk() override {
    if (mounted_) ::umount2(disk_.c_str(), MNT_DETACH);
  }
  std::string disk_;
  bool mounted_ = false;
};

TEST_F(FullDisk, EndsTheRunWithOneLineAndLeavesNothing) {
  if (!mount("1m")) GTEST_SKIP() << "a small tmpfs cannot be mounted here (root only)";
  TrainingRun run({"run.steps=20", "checkpoint.every_steps=2"});
  run.data = tiny_dataset();
  std::string folder = disk_ + "/run";
  auto finished = run.ganymede({"train", run.recipe, "--run", folder, "--set", "data.path=" + run.data, "--set",
                                "run.steps=20", "--set", "checkpoint.every_steps=2"},
                               90);
  EXPECT_EQ(finished.exit_code, 1) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("space"));
  wait_until([&] { return processes_with(folder).empty(); }, 5, "no process is left");
}

}  // namespace
}  // namespace ganymede::test
