#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "launcher/coordinator/membership.h"
#include "launcher/coordinator/next_world.h"
#include "launcher/coordinator/node_table.h"

/// Which nodes take part when some are lost, and which wait for a place.
namespace ganymede::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::Config recipe(int ranks, int ranks_per_node, int min_ranks) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.topology.ranks_per_node = ranks_per_node;
  config.elastic.min_ranks = min_ranks;
  config.launch.node_timeout_seconds = 10;
  return config;
}

bool divides_eight(const config::Parallel& parallel) {
  return 8 % parallel.ranks == 0 && parallel.ranks % (parallel.expert_group * parallel.replicas) == 0;
}

TEST(NextWorld, ASpareTakesThePlaceOfALostNode) {
  auto next = next_world({0, 1, 2, 3}, {2}, {4, 5}, recipe(8, 2, 0), divides_eight);
  ASSERT_TRUE(next);
  EXPECT_THAT(next->members, ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(next->parallel.ranks, 8);
}

TEST(NextWorld, WithoutASpareItHasTheMostRanksThatTheRecipeAllows) {
  auto next = next_world({0, 1, 2, 3}, {1}, {}, recipe(8, 2, 2), divides_eight);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->parallel.ranks, 4) << "6 do not divide the rows";
  EXPECT_THAT(next->members, ElementsAre(0, 2)) << "a node without ranks takes no part";
}

TEST(NextWorld, GroupsShrinkWhereTheyDoNotFit) {
  config::Config config = recipe(4, 2, 1);
  config.parallel.expert_group = 2;
  config.parallel.replicas = 2;
  auto next = next_world({0, 1}, {1}, {}, config, divides_eight);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->parallel.ranks, 2);
  EXPECT_EQ(next->parallel.expert_group, 2) << "replicas give way first";
  EXPECT_EQ(next->parallel.replicas, 1);
  EXPECT_THAT(settings_of(*next), ElementsAre("parallel.ranks=2", "parallel.expert_group=2", "parallel.replicas=1"));
}

config::Parallel parallel(int ranks, int expert_group = 1, int replicas = 1) {
  return {.ranks = ranks, .expert_group = expert_group, .replicas = replicas};
}

void check(const config::Parallel& one) {
  if (!divides_eight(one)) fail_usage("{} ranks do not divide 8.", one.ranks);
}

NextWorld wished(const WorldWish& wish, const std::vector<int>& spares = {}) {
  return wished_world({{0, 1}, parallel(4)}, wish, spares, recipe(4, 2, 0), check);
}

std::string refusal(const WorldWish& wish, const std::vector<int>& spares = {}) {
  try {
    wished(wish, spares);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(WishedWorld, TakesTheNodesThatItsRanksNeed) {
  EXPECT_THAT(wished({.ranks = 8}, {2, 3, 4}).members, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(wished({.ranks = 2}).members, ElementsAre(0));
  EXPECT_EQ(wished({.ranks = 2}).parallel.ranks, 2);
  EXPECT_THAT(wished({.without = {1}}, {3}).members, ElementsAre(0, 3));
  EXPECT_EQ(wished({.replicas = 2}).parallel.replicas, 2);
  EXPECT_EQ(wished({.replicas = 2}).parallel.ranks, 4);
}

TEST(WishedWorld, OnOneNodeHoldsWhatItIsAskedFor) {
  auto next = wished_world({{0}, parallel(2)}, {.ranks = 8}, {}, recipe(2, 0, 0), check);
  EXPECT_EQ(next.parallel.ranks, 8);
  EXPECT_THAT(next.members, ElementsAre(0));
  EXPECT_EQ(wished_world(next, {}, {}, recipe(2, 0, 0), check).parallel.ranks, 2) << "back to the recipe";
  EXPECT_EQ(wished_world(next, {.replicas = 2}, {}, recipe(2, 0, 0), check).parallel.ranks, 8) << "after it has grown";
}

TEST(WishedWorld, SaysWhyItCannotBe) {
  EXPECT_THAT(refusal({}), HasSubstr("Nothing would change: the world has 4 ranks"));
  EXPECT_THAT(refusal({.ranks = 8}), HasSubstr("8 ranks, 2 a node (topology.ranks_per_node), need 4 nodes, and 2 are"));
  EXPECT_THAT(refusal({.ranks = 3}), HasSubstr("3 ranks do not divide 8"));
  EXPECT_THAT(refusal({.without = {0}}), HasSubstr("Node 0 is the coordinator"));
  EXPECT_THAT(refusal({.without = {7}}), HasSubstr("Node 7 does not take part"));
  EXPECT_THAT(refusal({.without = {1}}), HasSubstr("The 1 node that would remain cannot hold 4 ranks or more"));
  EXPECT_THAT(refusal({.ranks = 4, .without = {1}}), HasSubstr("need 2 nodes, and 1 is there"));
}

TEST(NextWorld, FewerRanksThanAskedForAreNone) {
  EXPECT_FALSE(next_world({0, 1}, {1}, {}, recipe(4, 2, 3), divides_eight));
  EXPECT_FALSE(next_world({0, 1}, {1}, {}, recipe(4, 2, 0), divides_eight)) << "0: all of them are needed";
  EXPECT_FALSE(next_world({0, 1}, {0}, {2}, recipe(4, 2, 1), divides_eight)) << "node 0 is not replaced";
}

TEST(NextWorld, GrowsAgainWhenALostNodeIsBack) {
  auto next = next_world({0, 2}, {2}, {1, 3}, recipe(4, 2, 2), divides_eight);
  ASSERT_TRUE(next);
  EXPECT_THAT(next->members, ElementsAre(0, 1));
  EXPECT_EQ(next->parallel.ranks, 4);
}

NodeState report(int node, std::vector<int> ranks) {
  NodeState state;
  state.node = node;
  state.seat = 9;
  for (int rank : ranks) state.cells.push_back({.rank = rank, .services = {}});
  return state;
}

/// Nodes 0 and 2 of three take part, with two ranks each.
class ElasticNodes : public testing::Test {
 protected:
  NodeTable table_{parse_nodes("alpha:1,beta,gamma"), {0, 2}, recipe(4, 2, 2), 0};
};

TEST_F(ElasticNodes, OnlyThoseThatTakePartAreWaitedFor) {
  EXPECT_EQ(table_.count(), 1);
  EXPECT_THAT(table_.missing(), ElementsAre(2));
  EXPECT_EQ(table_.node_of(3), 2);
  table_.take(report(2, {2, 3}), 1);
  EXPECT_TRUE(table_.all_here());
  EXPECT_FALSE(table_.silent(9, 10, 10)) << "a node that takes no part is not silent";
}

TEST_F(ElasticNodes, ASpareWaitsAsLongAsItAsks) {
  EXPECT_FALSE(table_.hello({1, 3, 7, "beta"}, 100));
  EXPECT_THAT(table_.spares(102), ElementsAre(1));
  EXPECT_THAT(table_.spares(110), IsEmpty()) << "it has gone";
}

TEST_F(ElasticNodes, ASeatThatAPersonWantsToBeLeftIsNoSpareAndTheNextOneIs) {
  table_.leave_out({{1, 7}});
  EXPECT_FALSE(table_.hello({1, 3, 7, "beta"}, 100));
  EXPECT_THAT(table_.spares(101), IsEmpty());
  EXPECT_FALSE(table_.hello({1, 3, 8, "beta"}, 102)) << "started anew, on a machine that was mended";
  EXPECT_THAT(table_.spares(103), ElementsAre(1));
}

TEST_F(ElasticNodes, AMachineThatWasStartedAnewWaitsForAPlace) {
  EXPECT_TRUE(table_.hello({2, 3, 9, "gamma"}, 1));
  table_.run_begins();
  EXPECT_FALSE(table_.hello({2, 3, 10, "gamma"}, 5)) << "the launcher before it may still live";
  EXPECT_THAT(table_.spares(6), ElementsAre(2));
  EXPECT_THROW(table_.hello({2, 3, 11, "delta"}, 6), Error) << "another machine with the same --node is a mistake";
}

TEST_F(ElasticNodes, ANodeIsLostOnlyOnceItsServicesHaveEnded) {
  table_.take(report(2, {2, 3}), 0);
  EXPECT_TRUE(table_.silent(11, 10, 10));
  EXPECT_THAT(table_.lost(11), IsEmpty()) << "it may just be giving up";
  EXPECT_FALSE(table_.all_ended(11, false));
  EXPECT_THAT(table_.lost(18), ElementsAre(2));
  EXPECT_TRUE(table_.all_ended(18, false));
}

TEST_F(ElasticNodes, ANodeThatAsksAgainWhileTheWorldIsLeftHasEnded) {
  table_.take(report(2, {2, 3}), 0);
  EXPECT_TRUE(table_.hello({2, 3, 9, "gamma"}, 1));
  EXPECT_FALSE(table_.all_ended(2, false)) << "its last report may have been lost";
  table_.has_left(2);
  EXPECT_TRUE(table_.all_ended(2, false));
  EXPECT_THAT(table_.lost(1000), IsEmpty());
}

TEST(Membership, GenerationsThatFailWhileANodeIsAwayAreExcused) {
  Membership membership(1, 0);
  membership.worker_registered(0);
  membership.begin();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(membership.failed(5, false));
  EXPECT_TRUE(membership.failed(5));
  EXPECT_TRUE(membership.failed(5));
  EXPECT_FALSE(membership.failed(5)) << "the third in a row that counts";
}

}  // namespace
}  // namespace ganymede::coordinator
