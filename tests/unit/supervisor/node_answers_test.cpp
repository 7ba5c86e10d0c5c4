#include "launcher/supervisor/node_answers.h"

#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

TEST(NodeAnswers, ADifferenceNamesTheNodeOfEachValueAsBothNodesShowIt) {
  std::string of_node_0 = "[run]\nsteps = 5\n\n[optimizer]\nlr = 0.5  # peak\n";
  EXPECT_EQ(first_difference(of_node_0, 3, "[run]\nsteps = 5\n\n[optimizer]\nlr = 0.002  # peak\n"),
            "[optimizer] lr = 0.5 on node 0, lr = 0.002 on node 3");
  EXPECT_EQ(first_difference(of_node_0, 3, of_node_0), "");
  EXPECT_EQ(first_difference(of_node_0, 3, "[run]\nsteps = 5\n"), "one has more keys: are the programs of one build?");
}

}  // namespace
}  // namespace ganymede::launcher
