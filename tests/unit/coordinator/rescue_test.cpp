#include "launcher/coordinator/rescue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/coordinator/node_messages.h"
#include "launcher/coordinator/node_table.h"

/// Which ranks write for those that are lost, and what a coordinator has to know of nodes before they may.
namespace ganymede::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::Config world(int ranks, int replicas) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.replicas = replicas;
  config.topology.ranks_per_node = 2;
  config.elastic.min_ranks = 1;
  config.launch.node_timeout_seconds = 10;
  return config;
}

std::vector<std::pair<int, std::uint64_t>> found(const config::Config& config, const std::vector<int>& lost) {
  std::vector<std::pair<int, std::uint64_t>> all;
  auto ranks = stand_ins(config, lost);
  if (const auto* why = std::get_if<std::string>(&ranks))
    ADD_FAILURE() << *why;
  else
    for (const StandIn& one : std::get<std::vector<StandIn>>(ranks)) all.emplace_back(one.rank, one.replicas);
  return all;
}

std::string obstacle(const config::Config& config, const std::vector<int>& lost) {
  auto ranks = stand_ins(config, lost);
  return std::holds_alternative<std::string>(ranks) ? std::get<std::string>(ranks) : "";
}

TEST(StandIns, HoldTheShardOfALostRank) {
  using Pair = std::pair<int, std::uint64_t>;
  EXPECT_THAT(found(world(6, 3), {2, 3}), ElementsAre(Pair{0, 0b10}, Pair{1, 0b10}));
  EXPECT_THAT(found(world(6, 3), {2, 3, 4, 5}), ElementsAre(Pair{0, 0b110}, Pair{1, 0b110}));
  EXPECT_THAT(found(world(6, 3), {0, 3}), ElementsAre(Pair{1, 0b10}, Pair{2, 0b1})) << "of different replicas";
  EXPECT_THAT(found(world(6, 3), {}), IsEmpty());
}

TEST(StandIns, AreNoneForAShardThatNobodyElseHolds) {
  EXPECT_THAT(obstacle(world(4, 1), {3}), HasSubstr("holds the state of rank 3"));
  EXPECT_THAT(obstacle(world(6, 3), {1, 3, 5}), HasSubstr("holds the state of rank 1"));
  config::Config slices = world(4, 2);
  slices.replicas.state = config::ReplicaState::sharded;
  EXPECT_THAT(obstacle(slices, {2}), HasSubstr("replicas.state"));
  EXPECT_EQ(obstacle(slices, {}), "") << "all are there";
  EXPECT_THAT(obstacle(world(130, 65), {2}), HasSubstr("65 replicas"));
}

NodeState report(int node, int first, bool settled, std::uint64_t decided) {
  NodeState state{.node = node, .seat = 5, .session = 7, .cells = {}, .failure = "", .parts = {}};
  for (int rank = first; rank < first + 2; ++rank) {
    CellState& cell = state.cells.emplace_back();
    cell.rank = rank;
    cell.decided = decided;
  }
  state.settled = settled;
  return state;
}

TEST(NodesInARescue, AreSettledWhenAllThatRemainAre) {
  NodeTable table({{"a", 1}, {"b", 1}, {"c", 1}}, {0, 1, 2}, world(6, 3), 0);
  table.take(report(1, 2, false, 8), 1);
  table.take(report(2, 4, true, 9), 1);
  EXPECT_FALSE(table.settled({}));
  EXPECT_TRUE(table.settled({1}));
  EXPECT_THAT(table.decided({1}), ElementsAre(9, 9));
  EXPECT_THAT(table.ranks({1}), ElementsAre(2, 3));
  table.take(report(1, 2, true, 9), 15);
  EXPECT_TRUE(table.settled({}));
  EXPECT_THAT(table.silent_members(15, 10), ElementsAre(2));
}

TEST(NodesInARescue, MayWritePartsOfTheirReplicasAlone) {
  NodeTable table({{"a", 1}, {"b", 1}, {"c", 1}}, {0, 1, 2}, world(6, 3), 0);
  NodeState state = report(1, 2, true, 9);
  state.parts = {{4, 9, 100, "h"}};
  EXPECT_NO_THROW(table.take(state, 1)) << "rank 4 holds what rank 2 holds";
  state.parts = {{6, 9, 100, "h"}};
  EXPECT_ANY_THROW(table.take(state, 1)) << "there is no rank 6";
  NodeTable single({{"a", 1}, {"b", 1}, {"c", 1}}, {0, 1, 2}, world(6, 1), 0);
  state.parts = {{4, 9, 100, "h"}};
  EXPECT_ANY_THROW(single.take(state, 1));
}

TEST(NodesInARescue, HearOfItByMessages) {
  NodeWishes wishes{.phase = Phase::rescuing, .text = "", .restarts = {}};
  wishes.rescue = RescueOrder{12, {{3, 0b101}}};
  auto order = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, wishes); });
  NodeWishes heard = unpack(*order.as<fbs::NodeOrders>());
  EXPECT_EQ(heard.phase, Phase::rescuing);
  ASSERT_TRUE(heard.rescue);
  EXPECT_EQ(heard.rescue->step, 12u);
  EXPECT_EQ(heard.rescue->replicas_for(3), 0b101u);
  EXPECT_EQ(heard.rescue->replicas_for(2), 0u);
  auto message = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, report(1, 2, true, 9)); });
  NodeState state = unpack(*message.as<fbs::NodeReport>());
  EXPECT_TRUE(state.settled);
  EXPECT_EQ(state.cells[1].decided, 9u);
}

}  // namespace
}  // namespace ganymede::coordinator
