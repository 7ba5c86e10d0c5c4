#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/os/files.h"
#include "tests/multiprocess/swap/swapped_run.h"
#include "tests/support/tree.h"

/// Swaps that cannot be, or would not: the run goes on as if nobody had asked.
namespace ganymede::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// How many files of a folder of the run directory have names that begin so.
int files_of(const TrainingRun& run, const std::string& folder, const std::string& begin) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.folder() + "/" + folder))
    count += entry.path().filename().string().starts_with(begin) ? 1 : 0;
  return count;
}

/// The built-in plugins and faulty ones in one folder.
std::string plugin_folder(const TemporaryFolder& folder) {
  for (const std::string& from : {std::string(GANYMEDE_BINARY_DIR) + "/plugins", std::string(FAULTY_PLUGINS)})
    for (const auto& entry : std::filesystem::directory_iterator(from))
      std::filesystem::copy_file(entry.path(), folder.path() + "/" + entry.path().filename().string());
  return folder.path();
}

TEST(Swap, ThatCannotBeIsRefusedInOneLineAndTheRunGoesOn) {
  TemporaryFolder folder;
  auto all = swap_settings(2, 1000000);
  all.push_back("optimizer.plugin_folder=" + plugin_folder(folder));
  TrainingRun run(all);
  run.start();
  run.wait_for_step(3);
  auto refused = [&](const std::vector<std::string>& wish, int exit_code, const std::string& why) {
    auto answer = swap(run, wish);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr(why));
    EXPECT_EQ(std::count(answer.output.begin(), answer.output.end(), '\n'), 1) << answer.output;
  };
  refused({"nobody"}, 2, "nobody");
  refused({"other_abi"}, 1, "ABI");
  refused({"muon", "--set", "momentun=0.9"}, 2, "momentun");
  refused({"muon", "--set", "optimizer.threads=2"}, 2, "cannot change by a swap");
  refused({"lion", "--set", "lr=-1"}, 2, "has to be 0 to 1000");
  refused({"muon", "--set", "warm_steps=9999999"}, 2, "fewer with --set swap.warm_steps");
  refused({"crash", "--set", "warm_steps=0"}, 2, "--force");
  refused({"muon", "--set", "run.steps=5"}, 2, "--set run.steps: only keys of [optimizer]");
  refused({"muon", "--set", "lr=0.1", "--set", "warmup_steps=9999999"}, 2, "--set warmup_steps=9999999");
  refused({"lion", "--set", "lr=0.1", "--set", "optimizer.lr=0.2"}, 2, "Key 'optimizer.lr' is given twice");
  refused({"exits_when_loaded"}, 1, "exits_when_loaded.so ended the program that loads it (exit code 0)");
  refused({"loops_when_loaded", "--wait", "3"}, 1, "loops_when_loaded.so was still being loaded and tried after 3.0 s");
  const std::vector<std::string> at_once = {"--force", "--set", "warm_steps=0"};
  for (const std::string name : {"crashes_at_once", "hangs_at_once"}) {
    std::vector<std::string> wish = {name, "--wait", "3"};
    wish.insert(wish.end(), at_once.begin(), at_once.end());
    refused(wish, 1, name + (name == "hangs_at_once" ? ".so was still being" : ".so ended the program that loads it"));
  }
  // Each is ordered while the one before is being taken back.
  refused({"crash"}, 1, "was refused by rank");
  refused({"exits"}, 1, "exit code 0");
  EXPECT_EQ(run.status()["optimizer"], "adamw");
  run.wait_for_step(run.last_step() + 3);
  for (const auto& line : run.metrics()) EXPECT_EQ(line["state_epoch"], 0);
  auto again = swap(run, {"sgd", "--force", "--set", "warm_steps=0"});
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(files_of(run, "plugins", "crash."), 0);
  EXPECT_EQ(files_of(run, "plugins", "exits"), 0);
  EXPECT_EQ(files_of(run, ".", "config.1."), 0);
}

/// All ranks wait for a standby that hangs: it is killed, and does not get a second try.
TEST(Swap, ToAnOptimizerThatHangsIsRefusedAndNamesIt) {
  TemporaryFolder folder;
  auto all = swap_settings(2, 1000000);
  all.push_back("optimizer.plugin_folder=" + plugin_folder(folder));
  all.emplace_back("launch.heartbeat_timeout_seconds=10");
  TrainingRun run(all);
  run.start();
  run.wait_for_step(3);
  auto answer = swap(run, {"hangs"});
  EXPECT_EQ(answer.exit_code, 1);
  for (const char* part : {"was refused by rank", "(plugins/hangs.", "it made no progress for 10 s (applying a step)"})
    EXPECT_THAT(answer.output, HasSubstr(part));
  run.wait_for_step(run.last_step() + 3);
  EXPECT_THAT(run.output(), Not(HasSubstr("generation 1 failed")));
}

/// Bytes behind "host memory: ".
double needed_gib(const std::string& output) {
  std::istringstream text(output.substr(output.find("host memory: ") + std::string("host memory: ").size()));
  double number = 0;
  std::string unit;
  text >> number >> unit;
  return unit == "GiB" ? number : number / 1024;
}

TEST(Swap, ThatTheMemoryIsNotThereForIsRefusedByADryRunAsWell) {
  TrainingRun run(swap_settings(2, 1000000));
  ASSERT_EQ(run.train({"--steps", "1"}), 0) << run.output();
  std::string limit = std::to_string(needed_gib(run.output()) * 1.01);
  run.start({"--set", "launch.host_memory_limit_gib=" + limit});
  run.wait_for_step(3);
  auto json = swap(run, {"muon", "--dry-run", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  auto told = nlohmann::json::parse(json.output);
  EXPECT_EQ(told["state"], "refused");
  EXPECT_THAT(told["reason"], HasSubstr("launch.host_memory_limit_gib allows"));
  auto dry = swap(run, {"muon", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 1);
  EXPECT_THAT(dry.output, HasSubstr("The swap to 'muon' would be refused: "));
  auto answer = swap(run, {"muon"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.output, HasSubstr("The swap to 'muon' is refused: "));
  EXPECT_EQ(files_of(run, "plugins", "muon."), 0);
}

TEST(Swap, ThatIsNotInForceAtTheEndIsSaidToGoWithIt) {
  TrainingRun run(swap_settings(2, 1000000));
  run.start();
  run.wait_for_step(3);
  auto ordered = swap(run, {"muon", "--set", "lr=0.01", "--set", "warm_steps=100000", "--wait", "0"});
  EXPECT_EQ(ordered.exit_code, 0) << ordered.output;
  EXPECT_EQ(run.ganymede({"ctl", run.folder(), "stop"}, 60).exit_code, 0);
  EXPECT_EQ(run.wait(60), 75);
  EXPECT_THAT(run.output(), HasSubstr("the swap (adamw → muon, ")) << "it is being prepared or warmed up";
  EXPECT_THAT(run.output(), HasSubstr(") that was ordered is not in force yet and ends with this"));
}

TEST(Swap, OfADryRunSaysWhatItWouldTakeAndChangesNothing) {
  TrainingRun run(swap_settings(2, 1000000));
  run.start();
  run.wait_for_step(3);
  std::string before = os::read_file(run.folder() + "/job.json");
  auto answer = swap(run, {"muon", "--dry-run", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  auto told = nlohmann::json::parse(answer.output);
  EXPECT_EQ(told["state"], "possible");
  EXPECT_GT(told["memory"]["needed_per_cell"], 0);
  EXPECT_GT(told["from_step"], 3);
  ASSERT_EQ(told["parts"].size(), 2u);
  for (const auto& part : told["parts"]) EXPECT_EQ(part["from"], "adamw");
  EXPECT_EQ(os::read_file(run.folder() + "/job.json"), before);
  EXPECT_EQ(told["lr"][0]["after"], told["lr"][0]["before"]);
  auto text = swap(run, {"muon", "--set", "lr=0.02", "--dry-run"}).output;
  for (const char* part : {"nothing was changed", "learning rate 0.003 → 0.02; rest stays 0.003"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace ganymede::test
