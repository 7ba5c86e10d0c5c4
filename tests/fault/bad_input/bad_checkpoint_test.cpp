#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/os/files.h"
#include "tests/fault/bad_input/bad_input.h"
#include "tests/support/tree.h"

/// Run directories with checkpoints that are damaged, or do not fit what is asked.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;

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

TEST_F(BadCheckpoint, FixedKeysAreComparedEvenWithoutTheConfigurationOfTheRun) {
  fs::remove(run_.folder() + "/config.toml");
  expect_refused(run_, 2, {"model.window", "cannot change it"}, {"--steps", "6", "--set", "model.window=24"});
}

TEST_F(BadCheckpoint, DatasetThatWasReplacedIsRefusedUnlessANewRunStarts) {
  std::string other = folder_.path() + "/other", text = folder_.path() + "/text";
  fs::create_directory(text);
  for (int i = 0; i < 40; ++i)
    std::ofstream(fmt::format("{}/{}.txt", text, i)) << std::string(1000, static_cast<char>('a' + i % 26));
  auto packed = run_.ganymede({"data", "pack", text, "--to", other, "--seq-len", "64"});
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  // The same path as before, another content.
  std::string moved = folder_.path() + "/set";
  TrainingRun run({"run.steps=2"});
  fs::copy(tiny_dataset(), moved, fs::copy_options::recursive);
  run.data = moved;
  ASSERT_EQ(run.train(), 0) << run.output();
  fs::remove_all(moved);
  fs::rename(other, moved);
  expect_refused(run, 2, {"Dataset", moved, "another content", "put the old dataset back"}, {"--steps", "4"});
  EXPECT_EQ(run.last_step(), 2u);
  TrainingRun next({"run.steps=3"});
  next.data = moved;
  EXPECT_EQ(next.train({"--from", run.folder()}), 0) << next.output();
  EXPECT_THAT(next.output(), HasSubstr("is another one than that of the checkpoint of step 2"));
  TrainingRun short_one({"run.steps=2"});
  expect_refused(short_one, 2, {"run.steps", "step 2 already", "--steps 50"}, {"--from", run.folder()});
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

TEST_F(BadCheckpoint, TextThatCannotBeWrittenIsSaidOnce) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  std::string errors = folder_.path() + "/errors";
  std::string command = std::string(GANYMEDE_BINARY_DIR) + "/ganymede generate " + run_.folder() +
                        " --prompt a --tokens 200 > /dev/full 2> " + errors;
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_EQ(os::read_file(errors), "ganymede-data: The output cannot be written: No space left on device.\n");
}

}  // namespace
}  // namespace ganymede::test
