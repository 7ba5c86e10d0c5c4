#include "launcher/supervisor/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

TEST(LauncherOptions, TellWhatAPersonHasSetFromWhatTrainHasMadeOfIt) {
  std::vector<std::string> words = {"ganymede-launcher",
                                    "--run",
                                    "/r",
                                    "--recipe",
                                    "r.toml",
                                    "--imply",
                                    "a.b=2",
                                    "--set",
                                    "a.c=3",
                                    "--set",
                                    "a.b=1",
                                    "--imply",
                                    "a.path=x"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  Options options = parse_options(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_THAT(options.settings, testing::ElementsAre("a.c=3", "a.b=1", "a.b=2", "a.path=x"));
  EXPECT_THAT(options.said, testing::ElementsAre("a.b", "a.c"));
}

}  // namespace
}  // namespace ganymede::launcher
