#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/base/error.h"
#include "common/service/run_directory.h"
#include "launcher/cli/doctor.h"
#include "launcher/cli/open_files.h"
#include "launcher/cli/plan.h"
#include "launcher/cli/recipe_paths.h"
#include "launcher/cli/run_access.h"
#include "launcher/cli/train.h"
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
