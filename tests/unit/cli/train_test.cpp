#include "launcher/cli/train.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "launcher/cli/recipe_paths.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::cli {
namespace {

TEST(RecipeFile, OfARunDirectoryIsItsConfiguration) {
  test::TemporaryFolder folder;
  EXPECT_EQ(recipe_file(folder.path()), folder.path()) << "no configuration is there";
  std::ofstream(folder.path() + "/config.toml") << "";
  EXPECT_EQ(recipe_file(folder.path()), folder.path() + "/config.toml");
  EXPECT_EQ(recipe_file(folder.path() + "/config.toml"), folder.path() + "/config.toml");
}

TEST(Train, AnEmptyDataPathLeavesNoRunDirectory) {
  test::TemporaryFolder folder;
  std::string recipe = folder.path() + "/r.toml", run = folder.path() + "/run";
  std::ofstream(recipe) << "";
  CLI::App app;
  add_train(app);
  std::vector<std::string> words = {"data.path=", "--set", run,
                                    "--run",      recipe,  "train"};  // CLI11 takes the last one first
  EXPECT_THROW(app.parse(words), Error);
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST(Train, SeveralNodesWantToKnowWhichThisIs) {
  test::TemporaryFolder folder;
  std::string recipe = folder.path() + "/r.toml";
  std::ofstream(recipe) << "parallel.ranks = 2\ntopology.ranks_per_node = 1\n[data]\npath = \"d\"\nsources = [\"s\"]\n";
  CLI::App app;
  add_train(app);
  std::vector<std::string> words = {"127.0.0.1:4700,127.0.0.2",
                                    "--nodes",
                                    folder.path() + "/run",
                                    "--run",
                                    recipe,
                                    "train"};  // CLI11 takes the last one first
  try {
    app.parse(words);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()),
              "--nodes names 2 nodes, but not which of them this is: give each its own --node, 0 to 1; in a Slurm job "
              "--node \"$SLURM_NODEID\".");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/run"));
}

}  // namespace
}  // namespace ganymede::cli
