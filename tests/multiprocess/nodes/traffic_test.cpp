#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/plan/traffic.h"
#include "tests/support/network/nodes_run.h"
#include "tests/support/short_run.h"

/// The counters of a run, and the closed form that they are held against, are what a network interface has seen.
namespace ganymede::test {
namespace {

using testing::ElementsAre;

constexpr int steps = 10;
constexpr double headers = 0.03;

/// A model of 2.4 million parameters: a node sends 6 to 12 MB to the other in a step. Beside that, what comes
/// once (a start, tens of kB) and what launchers say to one another (a few kB a second) are far below 1%.
std::vector<std::string> settings(int ranks, std::vector<std::string> more) {
  more.insert(more.end(), {"model.hidden=192", "model.ffn=768", "model.expert_ffn=192", "data.rows_per_step=4",
                           "topology.ranks_per_node=" + std::to_string(ranks / 2)});
  return short_run(ranks, steps, std::move(more));
}

double between_nodes(const nlohmann::json& step) {
  double bytes = 0;
  for (const auto& line : step.at("traffic")) bytes += line.at("bytes_between_nodes").get<double>();
  return bytes;
}

/// What all steps of the run send from a node: of rank 0 as it was counted, of others in closed form.
double sent_from(int node, const NodesRun& run) {
  config::Config config = config::load(run.folder(0) + "/config.toml", {});
  double bytes = 0;
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    if (plan::node_of(config, rank) != node || rank == 0) continue;
    for (const auto& line : plan::step_traffic(config, placement::build(config, rank), plan::choices_of(config)))
      bytes += static_cast<double>(line.moved.between) * steps;
  }
  if (node == 0)
    for (const auto& step : run.first().metrics()) bytes += between_nodes(step);
  return bytes;
}

struct Sent {
  std::string name;
  int ranks = 2;
  std::vector<std::string> choices;
};

class Cables : public testing::TestWithParam<Sent> {
 protected:
  void SetUp() override {
    if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

TEST_P(Cables, CarryTheCountedBytesAndTheirHeaders) {
  TestNetwork network(2);
  NodesRun run(2, settings(GetParam().ranks, GetParam().choices), &network);
  run.start();
  ASSERT_THAT(run.wait(200), ElementsAre(0, 0)) << run.output(0) << run.output(1);
  ASSERT_EQ(run.first().metrics().size(), static_cast<std::size_t>(steps));
  for (int node = 0; node < 2; ++node) {
    double counted = sent_from(node, run), seen = static_cast<double>(network.bytes(node).sent);
    EXPECT_GT(counted, 50e6) << "enough that what else goes over the cable does not matter";
    EXPECT_GE(seen, counted) << "node " << node;
    EXPECT_LE(seen, counted * (1 + headers)) << "node " << node;
    RecordProperty("seen_by_counted_node" + std::to_string(node), std::to_string(seen / counted));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, Cables,
    testing::Values(Sent{.name = "TwoRanks", .choices = {}},
                    Sent{.name = "TwoRanksGatherInFp8AndReduceBf16",
                         .choices = {"wire.expert_gather=fp8", "wire.expert_gradients=bf16_all_to_all"}},
                    Sent{.name = "FourRanksCrossOnceANode",
                         .ranks = 4,
                         .choices = {"dense.reshard=node", "wire.dense_gradients=fp32_reduce_scatter"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ganymede::test
