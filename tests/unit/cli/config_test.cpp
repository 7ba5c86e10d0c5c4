#include "launcher/cli/config.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/config/fields.h"
#include "launcher/cli/table.h"
#include "launcher/cli/version.h"
#include "tests/support/tree.h"

namespace ganymede::cli {
namespace {

const std::string tiny = std::string(GANYMEDE_SOURCE_DIR) + "/configs/recipes/tiny.toml";

std::string refusal(const ConfigRequest& request) {
  try {
    config_text(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

TEST(Config, ListsEveryKeyOnceWithItsHelp) {
  std::string text = config_text({});
  auto keys = nlohmann::json::parse(config_json({}));
  config::OptimizerGroup group;
  ASSERT_EQ(keys.size(), config::keys().size() + config::group_fields("NAME", group).size());
  for (const auto& key : keys) {
    EXPECT_EQ(key["value"], key["standard"]) << key["key"];
    EXPECT_NE(text.find(key["help"].get<std::string>()), std::string::npos) << key["key"];
  }
}

TEST(Config, ShowsTheValuesOfARecipeAndMarksWhatDiffers) {
  ConfigRequest request{tiny, "wire.expert_gather", {"wire.expert_gather=fp8"}};
  auto keys = nlohmann::json::parse(config_json(request));
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0]["value"], "fp8");
  EXPECT_EQ(keys[0]["standard"], "fp32");
  EXPECT_EQ(keys[0]["allowed"], "fp32 or bf16 or fp8");
  EXPECT_NE(config_text(request).find("\"fp8\" *  \"fp32\"    fp32 or bf16 or fp8"), std::string::npos)
      << config_text(request);
}

TEST(Config, ListsGroupsAndPluginsKeysOfARecipe) {
  ConfigRequest request{
      tiny,
      "optimizer.",
      {"optimizer.group.embed.match=[\"embed*\"]", "optimizer.group.embed.lr=0.25", "optimizer.adamw.beta1=0.75"}};
  std::map<std::string, nlohmann::json> found;
  for (const auto& key : nlohmann::json::parse(config_json(request))) found[key["key"]] = key;
  EXPECT_EQ(found["optimizer.group.embed.lr"]["value"], 0.25);
  EXPECT_EQ(found["optimizer.group.embed.lr"]["standard"], -1);
  EXPECT_EQ(found["optimizer.group.embed.match"]["value"], nlohmann::json({"embed*"}));
  EXPECT_EQ(found["optimizer.adamw.beta1"]["value"], 0.75);
  EXPECT_TRUE(found["optimizer.adamw.beta1"]["standard"].is_null()) << "the plugin alone knows it";
  EXPECT_FALSE(found.contains("optimizer.group.NAME.lr")) << "that is how a group looks where there is no recipe";
  std::string text = config_text(request);
  for (const char* part :
       {"[optimizer.group.embed]", "0.25 *", "[optimizer.adamw]", "ganymede optimizer describe NAME"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_NE(config_text({}).find("[optimizer.group.NAME]"), std::string::npos);
  EXPECT_EQ(config_text({"", "model", {}}).find("describe NAME"), std::string::npos);
}

TEST(Config, ColumnsOfASectionAreAligned) {
  std::istringstream lines(config_text({"", "model", {}}));
  std::string header, line;
  std::getline(lines, header);
  auto column = header.find("standard");
  while (std::getline(lines, line)) {
    EXPECT_NE(line[column], ' ') << line;
    EXPECT_EQ(line[column - 1], ' ') << line;
  }
}

TEST(Config, NumbersWithoutALimitAreSaidSo) {
  EXPECT_NE(config_text({"", "run.seed", {}}).find("0 or more  "), std::string::npos);
}

TEST(Config, LargeLimitsAreReadable) {
  EXPECT_NE(config_text({"", "run.steps", {}}).find(" 1 to 1,000,000,000,000 "), std::string::npos)
      << config_text({"", "run.steps", {}});
  for (const auto& key : nlohmann::json::parse(config_json({"", "run.steps", {}})))
    EXPECT_EQ(key["allowed"], "1 to 1000000000000") << "for programs";
  std::string all = config_text({});
  EXPECT_EQ(all.find("1000000000000"), std::string::npos) << all;
  EXPECT_NE(all.find(" 0 to 1,024 "), std::string::npos) << all;
}

TEST(Config, APrefixThatNoKeyHasNamesTheNearest) {
  EXPECT_EQ(refusal({"", "wier", {}}), "No key begins with 'wier'; did you mean 'wire'?");
  EXPECT_EQ(refusal({"", "zzzzzz", {}}), "No key begins with 'zzzzzz': `ganymede config` shows all.");
}

TEST(Config, SettingsNeedTheRecipeThatTheyChange) {
  EXPECT_EQ(refusal({"", "", {"run.steps=5"}}), "--set run.steps=5: name the recipe that it changes.");
}

TEST(Table, CountsCharactersNotBytesAndLeavesEmptyColumnsOut) {
  Table table("lrl", "  ");
  table.add({"a", "n", "none"});
  table.add({"…", "12"});
  table.add({"ab", "3"});
  EXPECT_EQ(table.text(), "  a    n  none\n  …   12\n  ab   3\n");
  EXPECT_EQ(table.text(true), "  a    n\n  …   12\n  ab   3\n");
}

TEST(Version, SaysWhatWasBuilt) {
  std::string text = version_text();
  EXPECT_TRUE(text.starts_with("ganymede ")) << text;
  for (const char* part : {"commit ", "build ", "sanitizers: "}) EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace ganymede::cli
