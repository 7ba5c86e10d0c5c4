#include <gtest/gtest.h>

#include "tests/unit/config/recipe_file.h"

namespace ganymede::config {
namespace {

class GroupSections : public RecipeFile {};

TEST_F(GroupSections, AreReadFromTheRecipeAndFromSettings) {
  Config c = load_text("[optimizer.group.vectors]\nmatch = [\"*norm.weight\"]\nweight_decay = 0.0\n",
                       {"optimizer.group.vectors.lr=0.5", "optimizer.group.rest.optimizer=sgd"});
  ASSERT_EQ(c.optimizer.groups.size(), 2u);
  const OptimizerGroup& vectors = c.optimizer.groups["vectors"];
  EXPECT_EQ(vectors.match, std::vector<std::string>{"*norm.weight"});
  EXPECT_EQ(vectors.lr, 0.5);
  EXPECT_EQ(vectors.weight_decay, 0);
  EXPECT_EQ(vectors.optimizer, "");
  EXPECT_EQ(optimizers_of(c.optimizer), (std::vector<std::string>{"adamw", "sgd"}));
}

TEST_F(GroupSections, TheRestIsUpdatedByAdamWUnlessItNamesAnother) {
  EXPECT_EQ(load_text("[optimizer.group.rest]\nlr = 0.5\n").optimizer.groups["rest"].optimizer, "adamw");
}

TEST_F(GroupSections, WhatIsWrongInThemIsNamed) {
  EXPECT_EQ(error_of("[optimizer.group.a]\nlr = 0.5\n"),
            "recipe.toml: key 'optimizer.group.a.match' is missing: it says which parameters are in the group, for "
            "example [\"*.bias\"].");
  EXPECT_EQ(error_of("[optimizer.group.a]\nmatches = [\"x\"]\n"),
            "recipe.toml:2: key 'optimizer.group.a.matches' is not known; did you mean 'optimizer.group.a.match'?");
  EXPECT_NE(error_of("[optimizer.group.A]\nlr = 1.0\n").find("is not known"), std::string::npos);
  EXPECT_NE(error_of("[optimizer.group.rest]\nmatch = [\"x\"]\n").find("is not known"), std::string::npos);
  EXPECT_NE(error_of("[optimizer.group.a]\nmatch = [\"x\"]\nlr = -2\n").find("-1 to 1000"), std::string::npos);
  EXPECT_NE(error_of("[optimizer.group.a]\nmatch = [\"x\"]\nlr = -0.5\n").find("0 or more, or -1"), std::string::npos);
  EXPECT_NE(error_of("[optimizer.group.a]\nmatch = [\"x\"]\noptimizer = \"../x\"\n").find("which is not a name"),
            std::string::npos);
  std::string many;
  for (char name = 'a'; name < 'i'; ++name) many += std::string("[optimizer.group.") + name + "]\nmatch = [\"x\"]\n";
  EXPECT_NE(error_of(many).find("there are 8 groups [optimizer.group.NAME]; at most 7"), std::string::npos);
}

}  // namespace
}  // namespace ganymede::config
