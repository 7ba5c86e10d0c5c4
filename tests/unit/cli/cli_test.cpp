#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/msg/message.h"
#include "common/service/run_directory.h"
#include "launcher/cli/doctor.h"
#include "launcher/cli/open_files.h"
#include "launcher/cli/plan.h"
#include "launcher/cli/recipe_paths.h"
#include "launcher/cli/run_access.h"
#include "launcher/cli/status_view.h"
#include "launcher/cli/train.h"
#include "launcher/keeper/failure.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::cli {
namespace {

TEST(RecipePaths, RelativePathsAreThoseOfTheFolderOneWorksIn) {
  config::Config config;
  config.data.path = "runs/data";
  config.data.sources = {"texts/a", "/usr/lib/python3*"};
  config.data.tokenizer = "../t.model";
  config.optimizer.plugin_folder = "plugins";
  EXPECT_EQ(absolute_paths(config, "/home/u"),
            (std::vector<std::string>{"data.path=\"/home/u/runs/data\"", "data.tokenizer=\"/home/t.model\"",
                                      "optimizer.plugin_folder=\"/home/u/plugins\"",
                                      "data.sources=[\"/home/u/texts/a\", \"/usr/lib/python3*\"]"}));
}

TEST(RecipePaths, TokenizersThatNameNoFileStay) {
  config::Config config;
  EXPECT_TRUE(absolute_paths(config, "/home/u").empty());
  config.data.tokenizer = "train:8192";
  EXPECT_TRUE(absolute_paths(config, "/home/u").empty());
}

TEST(RecipePaths, SettingsReadBackAsTheSamePaths) {
  test::TemporaryFolder folder;
  std::string recipe = folder.path() + "/r.toml";
  std::ofstream(recipe) << "[data]\npath = \"a \\\"b\\\\c\"\nsources = [\"x y\", \"z\"]\n";
  config::Config config = config::load(recipe, {});
  config::Config absolute = config::load(recipe, absolute_paths(config, "/w"));
  EXPECT_EQ(absolute.data.path, "/w/a \"b\\c");
  EXPECT_EQ(absolute.data.sources, (std::vector<std::string>{"/w/x y", "/w/z"}));
}

TEST(RecipePaths, RunIsNamedAfterTheRecipeOrIsTheFolderOfItsConfig) {
  EXPECT_EQ(default_run("configs/recipes/tiny.toml"), "runs/tiny");
  test::TemporaryFolder folder;
  std::string config = folder.path() + "/config.toml";
  EXPECT_EQ(default_run(config), "runs/config");
  std::ofstream(folder.path() + "/job.json") << "{}";
  EXPECT_EQ(default_run(config), folder.path());
}

TEST(RecipePaths, RunWithControlCharactersIsRefusedAndShownEscaped) {
  EXPECT_NO_THROW(check_run_folder("/w/a run of \u00e9"));
  for (const auto& [run, shown] : std::map<std::string, std::string>{{"/w/a\nb", "'/w/a\\nb'"},
                                                                     {"/w/a\tb", "'/w/a\\tb'"},
                                                                     {"/w/a\x7f", "'/w/a\\x7f'"},
                                                                     {"/w/\x1b[K", "\\x1b[K"}}) {
    try {
      check_run_folder(run);
      FAIL() << shown << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(shown), std::string::npos) << error.what();
    }
  }
}

TEST(RecipePaths, RecipeThatNamesNoDatasetIsRefused) {
  config::Config config;
  try {
    check_dataset_named(config, "r.toml");
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()).find("r.toml: key 'data.path' is empty"), 0u) << error.what();
  }
  config.data.path = "no/such/dataset";
  EXPECT_THROW(check_dataset_named(config, "r.toml"), Error) << "and there is nothing to pack it from";
  config.data.sources = {"s"};
  EXPECT_NO_THROW(check_dataset_named(config, "r.toml"));
}

void expect_empty_words_refused(void (*add)(CLI::App&), const char* command, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    CLI::App app;
    add(app);
    bool option = name[0] == '-';
    std::vector<std::string> words = {command, option ? "/none.toml" : ""};
    if (option) words.insert(words.end(), {name, ""});
    std::reverse(words.begin(), words.end());  // CLI11 takes the last one first
    try {
      app.parse(words);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()).find(name + " is empty: "), 0u) << error.what();
    }
  }
}

TEST(EmptyWord, IsNotTheSameAsNone) {
  expect_empty_words_refused(add_train, "train", {"--from", "--run", "--key", "--nodes", "RECIPE"});
  expect_empty_words_refused(add_plan, "plan", {"RECIPE", "--hardware", "--measured", "--svg", "--diff"});
}

TEST(OpenFiles, TooFewAreRefusedBeforeTheRunBegins) {
  EXPECT_NO_THROW(require_open_files(1024, 8));
  try {
    require_open_files(100, 2);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "Only 100 files may be open at once (ulimit -n), and 2 ranks on one node need 160: raise it with `ulimit -n "
        "160`, or use fewer parallel.ranks.");
  }
}

/// A status with one worker operation a rank.
msg::Message status_of(const std::vector<std::string>& operations, std::uint64_t step = 7, double loss = 2.5,
                       const std::vector<int>& missing = {}, const char* state_of_last = "running") {
  return msg::Message::build(1, 1, [&](flatbuffers::FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
    for (std::size_t rank = 0; rank < operations.size(); ++rank) {
      std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services = {fbs::CreateServiceStatusDirect(
          builder, fbs::ServiceKind::worker, 100 + static_cast<int>(rank),
          rank + 1 == operations.size() ? state_of_last : "running", 2, "", operations[rank].c_str(), 0.5)};
      cells.push_back(fbs::CreateCellStatusDirect(builder, static_cast<int>(rank), 0, &services));
    }
    std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers = {fbs::CreateLauncherStatus(builder, 0, 11, 10)};
    for (int node : missing) launchers.push_back(fbs::CreateLauncherStatus(builder, node, 0, 0));
    return msg::Message::body(
        fbs::CreateStatusDirect(builder, "/r", step, 50, 3, "training", &cells, &launchers, loss, 1000, -1, ""));
  });
}

TEST(StatusView, JsonHasTheKeysThatScriptsRely) {
  auto message = status_of({"forward"});
  auto object = nlohmann::json::parse(status_json(*message.as<fbs::Status>()));
  EXPECT_EQ(object["run"], "/r");
  EXPECT_EQ(object["step"], 7);
  EXPECT_EQ(object["generation"], 3);
  EXPECT_EQ(object["state"], "training");
  EXPECT_EQ(object["cells"][0]["rank"], 0);
  EXPECT_EQ(object["cells"][0]["node"], 0);
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["pid"], 100);
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["state"], "running");
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["restarts"], 2);
  EXPECT_EQ(object["launchers"], nlohmann::json::parse(R"([{"node":0,"pid":11,"keeper_pid":10}])"));
}

TEST(StatusView, SaysThatNoStepIsDoneYet) {
  auto first = status_of({"forward"}, 0, std::nan(""));
  std::string text = status_text(*first.as<fbs::Status>());
  EXPECT_NE(text.find("at step 0/50, generation 3, no step is done yet, no checkpoint yet"), std::string::npos) << text;
  EXPECT_TRUE(nlohmann::json::parse(status_json(*first.as<fbs::Status>()))["loss"].is_null());
  auto later = status_of({"forward"});
  EXPECT_NE(status_text(*later.as<fbs::Status>()).find("loss 2.5000, 1,000 tok/s"), std::string::npos);
}

TEST(StatusView, NamesTheNodesThatHaveNotCome) {
  auto message = status_of({"forward"}, 0, std::nan(""), {1, 3});
  const auto& status = *message.as<fbs::Status>();
  EXPECT_TRUE(status_text(status).ends_with("\nwaiting for nodes 1, 3")) << status_text(status);
  EXPECT_TRUE(where_text(status).ends_with("\nwaiting for nodes 1, 3")) << where_text(status);
  auto object = nlohmann::json::parse(status_json(status));
  EXPECT_EQ(object["missing_nodes"], (std::vector<int>{1, 3}));
  EXPECT_EQ(object["launchers"].size(), 1u);
}

TEST(StatusView, FindsTheRankThatEveryoneWaitsFor) {
  auto awaited = [](const std::vector<std::string>& operations) {
    return awaited_rank(*status_of(operations).as<fbs::Status>());
  };
  EXPECT_EQ(awaited({"gather embed", "forward layer.1.dense", "vote"}), 1);
  EXPECT_EQ(awaited({"gather embed", "gather embed"}), -1);
  EXPECT_EQ(awaited({"forward", "backward", "gather head"}), -1);
  EXPECT_EQ(awaited({"forward"}), -1);
  EXPECT_EQ(awaited({"combine layer.2.experts", "wait_update embed", "regather layer.1.dense, gradients"}), 1);
}

TEST(StatusView, NamesAServiceThatIsStoppedWhateverItDidLast) {
  auto message = status_of({"backward layer.1.dense", "reduce layer.1.dense"}, 7, 2.5, {}, "stopped");
  const auto& status = *message.as<fbs::Status>();
  EXPECT_EQ(awaited_rank(status), 1);
  EXPECT_TRUE(where_text(status).ends_with("\neveryone waits for worker of rank 1, which is stopped: kill -CONT 101"))
      << where_text(status);
}

/// Works in a run directory that nobody runs.
class StoppedRun : public ::testing::Test {
 protected:
  StoppedRun() {
    std::filesystem::create_directory(folder_.path() + "/ipc");
    enter_run(folder_.path());
  }
  ~StoppedRun() override { std::filesystem::current_path(before_); }
  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(StoppedRun, SaysStoppedWithItsLastStep) {
  std::ofstream("metrics.jsonl") << "{\"step\": 41, \"loss\": 2.5}\n{\"step\": 42, \"loss\": 2.4}\n";
  EXPECT_FALSE(run_is_alive());
  auto object = nlohmann::json::parse(idle_json("stopped", ""));
  EXPECT_EQ(object["state"], "stopped");
  EXPECT_EQ(object["step"], 42);
  EXPECT_TRUE(object["cells"].empty());
  EXPECT_NE(idle_text("stopped", "").find("stopped at step 42"), std::string::npos);
  EXPECT_NE(idle_text("recovering", "packing").find("; the launcher is packing"), std::string::npos);
  std::ofstream("metrics.jsonl", std::ios::app) << "{\"step\": -3}\n{\"step\": 18446744073709551615}\n";
  EXPECT_EQ(nlohmann::json::parse(idle_json("stopped", ""))["step"], 42) << "damaged lines do not count";
}

TEST_F(StoppedRun, ThatFailedSaysSoAndHow) {
  std::ofstream("metrics.jsonl") << "{\"step\": 42, \"loss\": 2.4}\n";
  keeper::note_failure("The worker of rank 1 ended: exit code 3; its last log lines:\nthe first\nthe second");
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr(": failed at step 42"));
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr("\nThe worker of rank 1 ended: exit code 3"));
  EXPECT_THAT(idle_text("stopped", ""), testing::Not(testing::HasSubstr("the first")));
  auto object = nlohmann::json::parse(idle_json("stopped", ""));
  EXPECT_EQ(object["state"], "stopped") << "scripts know these states";
  EXPECT_EQ(object["failure"], "The worker of rank 1 ended: exit code 3; its last log lines:");
  EXPECT_THAT(idle_text("recovering", ""), testing::HasSubstr("recovering at step 42"));
  keeper::clear_failure();
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr("stopped at step 42"));
  EXPECT_FALSE(nlohmann::json::parse(idle_json("stopped", "")).contains("failure"));
}

TEST_F(StoppedRun, WithAllItsStepsInACheckpointIsDone) {
  std::ofstream("config.toml") << "[run]\nsteps = 42\n";
  std::ofstream("metrics.jsonl") << "{\"step\": 42, \"loss\": 2.4}\n";
  EXPECT_NE(idle_text("stopped", "").find("stopped at step 42/42"), std::string::npos) << "it would begin again";
  std::filesystem::create_directory("checkpoint");
  service::Manifest manifest;
  manifest.step = 42;
  manifest.world = manifest.expert_group = 1;
  manifest.optimizer = "adamw";
  manifest.parts = {{0, 1, "h"}};
  service::write_manifest("checkpoint", manifest);
  EXPECT_NE(idle_text("stopped", "").find(": done at step 42/42, last checkpoint: step 42"), std::string::npos);
  EXPECT_NE(idle_text("recovering", "").find("recovering at step 42/42"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(idle_json("stopped", ""))["state"], "stopped");
}

TEST(RunAccess, FolderThatIsNoRunDirectoryIsAUsageError) {
  test::TemporaryFolder folder;
  try {
    enter_run(folder.path());
    FAIL() << "it was entered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(Doctor, EveryFindingSaysSomething) {
  for (const auto& finding : examine()) {
    EXPECT_FALSE(finding.check.empty());
    EXPECT_FALSE(finding.text.empty()) << finding.check;
  }
}

TEST(Doctor, SaysThatABusyMachineIsSlow) {
  EXPECT_EQ(load_finding(0.4, 2).text, "0.4 on 2 cores in the last minute");
  Finding busy = load_finding(3.25, 2);
  EXPECT_TRUE(busy.good) << "it is no fault of the machine";
  EXPECT_TRUE(busy.text.starts_with("3.2 on 2 cores in the last minute: busy, so steps are slow")) << busy.text;
}

}  // namespace
}  // namespace ganymede::cli
