#include "launcher/supervisor/node_restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A node with rank 1, whose worker was restarted so often.
coordinator::NodeState node(std::uint64_t session, int restarts) {
  coordinator::NodeState state;
  state.node = 1;
  state.session = session;
  coordinator::CellState cell;
  cell.rank = 1;
  cell.services.resize(2);
  cell.services[0].kind = service::Kind::data;
  cell.services[1].kind = service::Kind::worker;
  cell.services[1].restarts = restarts;
  state.cells.push_back(cell);
  return state;
}

TEST(NodeRestarts, AreSaidOnceWithNodeAndRank) {
  auto before = node(5, 1), now = node(5, 2);
  EXPECT_THAT(restarts_since(before, now, "node 1 (beta)"),
              ElementsAre("node 1 (beta): worker of rank 1 is started again (restart 2)"));
  EXPECT_THAT(restarts_since(now, now, "node 1 (beta)"), IsEmpty());
}

TEST(NodeRestarts, AnotherLauncherCountsAnew) {
  auto old = node(5, 2), first = node(6, 0), next = node(6, 1);
  EXPECT_THAT(restarts_since(old, first, "node 1"), IsEmpty());
  EXPECT_THAT(restarts_since(old, next, "node 1"),
              ElementsAre("node 1: worker of rank 1 is started again (restart 1)"));
}

TEST(NodeRestarts, ABinaryThatIsNotRunIsSaidOnce) {
  auto before = node(5, 1), now = node(6, 0);
  now.cells[0].services[1].refusal = "it ended twice";
  now.cells[0].services[1].refused = 7;
  EXPECT_THAT(refusals_since(before, now, "node 1"), ElementsAre("node 1: it ended twice"));
  EXPECT_THAT(refusals_since(now, now, "node 1"), IsEmpty());
}

}  // namespace
}  // namespace ganymede::launcher
