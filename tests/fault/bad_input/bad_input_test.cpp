#include "tests/fault/bad_input/bad_input.h"

#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

namespace ganymede::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  run.data = folder_.path() + "/set";
  expect_refused(run, 2, {"optimizer.name", "sophia", "available are adamw"});
  EXPECT_FALSE(fs::exists(run.folder())) << "nothing is made";
  EXPECT_FALSE(fs::exists(run.data)) << "nothing is packed";
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
  EXPECT_FALSE(fs::exists(run.folder())) << "nothing is made";
}

TEST_F(BadInput, SourceThatIsMissingIsSaidOnce) {
  TrainingRun run({"data.sources=[\"/no/such/sources\"]"});
  run.data = folder_.path() + "/nothing";
  expect_refused(run, 2, {"/no/such/sources", "does not exist"});
  EXPECT_THAT(run.output(), Not(HasSubstr("could not be packed")));
}

TEST_F(BadInput, DatasetOfAnotherRowLength) {
  TrainingRun run({"data.seq_len=128"});
  expect_refused(run, 2, {tiny_dataset(), "rows of 64 tokens", "data.seq_len is 128", "name another data.path"});
  EXPECT_FALSE(fs::exists(run.folder())) << "nothing is made";
}

TEST_F(BadInput, DatasetOfAnotherTokenizer) {
  TrainingRun run({"data.tokenizer=train:300", "model.vocabulary=300"});
  expect_refused(run, 2, {tiny_dataset(), "\"bytes\"", "data.tokenizer is \"train:300\"", "name another data.path"});
  EXPECT_FALSE(fs::exists(run.folder())) << "nothing is made";
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
    std::string data = "";
  };
  std::string long_rows = folder_.path() + "/long";
  auto packed = TrainingRun().ganymede(
      {"data", "pack", write("text.txt", std::string(100'000, 'a')), "--to", long_rows, "--seq-len", "32768"});
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  const Case cases[] = {
      {{"parallel.ranks=65536", "data.rows_per_step=65536"}, {"files may be open", "parallel.ranks"}},
      {{"data.rows_per_step=5000", "model.hidden=16777216", "model.expert_ffn=1", "model.ffn=1", "model.heads=1",
        "model.kv_heads_sliding=1"},
       {"the inputs of all layers", "data.seq_len"}},
      {{"data.slots=64", "data.rows_per_step=5000", "data.seq_len=32768", "model.hidden=16",
        "validation.every_steps=0"},
       {"the batches", "data.rows_per_step"},
       long_rows},
      {{"compute.loss_chunk=16777216", "model.vocabulary=1000000"}, {"one layer", "compute.loss_chunk"}},
  };
  for (const Case& c : cases) {
    TrainingRun run(c.settings);
    if (!c.data.empty()) run.data = c.data;
    expect_refused(run, 1, c.parts);
  }
}

TEST_F(BadInput, MoreThreadsThanCores) {
  TrainingRun run({"compute.threads=1024"});
  expect_refused(run, 2, {"compute.threads", "1024", "core"});
  EXPECT_FALSE(fs::exists(run.folder() + "/config.toml")) << "a refused configuration is not kept";
}

TEST_F(BadInput, LearningRateThatMakesTheRunDiverge) {
  TrainingRun run({"optimizer.lr=1000", "optimizer.clip_norm=0", "optimizer.warmup_steps=0", "run.steps=30",
                   "optimizer.stop_after_skips=3"});
  expect_refused(run, 1, {"The last 3 steps", "were skipped", "optimizer.lr"});
}

TEST_F(BadInput, PluginFolderThatIsMissing) {
  TrainingRun run({"optimizer.plugin_folder=/nowhere"});
  expect_refused(run, 2, {"/nowhere", "optimizer.plugin_folder"});
}

TEST_F(BadInput, NetworkInterfaceThatIsMissing) {
  TrainingRun run({"topology.interface=no-such-if0"});
  expect_refused(run, 2, {"topology.interface", "no-such-if0", "lo"});
}

TEST_F(BadInput, WrapperThatIsMissing) {
  TrainingRun run({"launch.wrap_worker=no-such-debugger --args"});
  expect_refused(run, 2, {"launch.wrap_worker", "no-such-debugger", "PATH"});
  EXPECT_FALSE(fs::exists(run.folder() + "/config.toml")) << "a refused configuration is not kept";
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
