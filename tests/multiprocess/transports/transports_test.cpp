#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/error.h"
#include "common/plan/exchange_form.h"
#include "common/plan/traffic.h"
#include "tests/support/training_run.h"

/// What carries the bytes, and over how many nodes, changes none of them; and every byte is counted.
namespace ganymede::test {
namespace {

constexpr int steps = 6;

struct World {
  int ranks = 4, expert_group = 1, replicas = 1, ranks_per_node = 0;
  std::string backend = "auto", dense = "fp32_all_to_all", experts = "fp32_all_to_all", gather = "fp32";
  int router_groups = 1;
  std::string exchange = "auto";          // of tokens
  std::vector<std::string> choices = {};  // of the plan
};

std::vector<std::string> settings(const World& world) {
  std::vector<std::string> all = {fmt::format("parallel.ranks={}", world.ranks),
                                  fmt::format("parallel.expert_group={}", world.expert_group),
                                  fmt::format("parallel.replicas={}", world.replicas),
                                  fmt::format("topology.ranks_per_node={}", world.ranks_per_node),
                                  fmt::format("collectives.backend={}", world.backend),
                                  fmt::format("wire.dense_gradients={}", world.dense),
                                  fmt::format("wire.expert_gradients={}", world.experts),
                                  fmt::format("wire.expert_gather={}", world.gather),
                                  fmt::format("model.router_groups={}", world.router_groups),
                                  fmt::format("expert_exchange={}", world.exchange),
                                  "data.rows_per_step=12",
                                  fmt::format("run.steps={}", steps),
                                  "checkpoint.every_steps=0",
                                  "compute.threads=1",
                                  "validation.every_steps=0"};
  all.insert(all.end(), world.choices.begin(), world.choices.end());
  return all;
}

std::unique_ptr<TrainingRun> trained(const World& world) {
  auto run = std::make_unique<TrainingRun>(settings(world));
  if (int code = run->train(); code != 0) fail("The run ended with {}:\n{}", code, run->output());
  return run;
}

void expect_same_bits(const World& a, const World& b) {
  auto first = trained(a), second = trained(b);
  EXPECT_EQ(first->losses(), second->losses());
  EXPECT_EQ(first->state_hash(), second->state_hash());
}

TEST(Transports, SharedMemoryAndMessagesGiveTheSameBits) {
  expect_same_bits({.backend = "auto"}, {.backend = "gloo"});
  expect_same_bits({.expert_group = 2, .backend = "shm", .gather = "fp8"},
                   {.expert_group = 2, .backend = "gloo", .gather = "fp8"});
}

TEST(Transports, FormsOfTheExpertExchangeGiveTheSameBits) {
  expect_same_bits({.expert_group = 2, .backend = "shm", .router_groups = 2},
                   {.expert_group = 2, .backend = "shm", .router_groups = 2, .exchange = "uneven"});
  expect_same_bits({.ranks = 2, .expert_group = 2, .backend = "shm", .router_groups = 2},
                   {.ranks = 2, .expert_group = 2, .backend = "gloo", .router_groups = 2});
}

TEST(Transports, SumsInRankOrderDoNotDependOnNodes) {
  expect_same_bits({.ranks_per_node = 0}, {.ranks_per_node = 2});
  expect_same_bits({.dense = "bf16_all_to_all", .experts = "bf16_all_to_all"},
                   {.ranks_per_node = 2, .dense = "bf16_all_to_all", .experts = "bf16_all_to_all"});
  expect_same_bits({.ranks = 3, .ranks_per_node = 0}, {.ranks = 3, .ranks_per_node = 2});
}

TEST(Transports, ChoicesThatMoveDataAndTimeChangeNoBit) {
  std::vector<std::string> moved = {"dense.reshard=node", "micro_batch.rows=2", "stream_update=false",
                                    "norm_in_backward=false", "offload.fraction=0.5"};
  std::vector<std::string> held = {"keep_gathered=true", "gather_on_compute_lane=true",
                                   "reduce_into_compute_pool=false", "rope_cache=per_layer"};
  auto plain = trained({.ranks_per_node = 2});
  for (const auto& choices : {moved, held}) {
    auto other = trained({.ranks_per_node = 2, .choices = choices});
    EXPECT_EQ(other->losses(), plain->losses()) << choices.front();
    EXPECT_EQ(other->state_hash(), plain->state_hash()) << choices.front();
  }
}

TEST(Transports, OnOneNodeReduceScatterIsTheSumInRankOrder) {
  expect_same_bits({}, {.dense = "fp32_reduce_scatter", .experts = "fp32_reduce_scatter"});
}

TEST(Transports, NodesFirstStaysCloseAndRoundedGradientsStayClose) {
  auto exact = trained({});
  for (const World& world :
       {World{.ranks_per_node = 2, .dense = "fp32_reduce_scatter", .experts = "fp32_reduce_scatter"},
        World{.dense = "bf16_all_to_all", .experts = "bf16_all_to_all"}}) {
    // fp32 in another order: rounding. bf16 contributions have 8 bits, so steps of the same size in a direction that is
    // off by 2^-9 of its length: the curve moves by far less than 1%.
    double tolerance = world.ranks_per_node > 0 ? 1e-6 : 1e-2;
    auto losses = trained(world)->losses();
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], exact->losses()[i], tolerance * losses[i]) << world.dense << " step " << i + 1;
  }
}

class Counters : public testing::TestWithParam<World> {};

TEST_P(Counters, HaveTheBytesOfTheClosedForm) {
  auto run = trained(GetParam());
  config::Config config = config::load(run->folder() + "/config.toml", {});
  auto placement = placement::build(config, 0);
  std::map<std::pair<std::string, std::string>, plan::Moved> expected, counted;
  for (const plan::TrafficLine& line : plan::step_traffic(config, placement, plan::choices_of(config))) {
    if (line.moved.all() > 0)
      expected[{plan::name(line.kind), line.operation.substr(0, line.operation.find(','))}] += line.moved;
  }
  nlohmann::json last = run->metrics().back();
  for (const nlohmann::json& line : last["traffic"]) {
    bool exchange = line["operation"] == "dispatch" || line["operation"] == "combine";
    if (line["operation"] == "control" || (exchange && !plan::exchange_form(config).even)) continue;
    counted[{line["bucket"], line["operation"]}] += {line["bytes_inside_node"], line["bytes_between_nodes"]};
  }
  ASSERT_FALSE(expected.empty());
  for (const auto& [what, moved] : expected) {
    EXPECT_EQ(counted[what].inside, moved.inside) << what.first << " " << what.second;
    EXPECT_EQ(counted[what].between, moved.between) << what.first << " " << what.second;
  }
  EXPECT_EQ(counted.size(), expected.size());
  EXPECT_EQ(last["memory"]["device_measured_peak"], last["memory"]["device_predicted_peak"]);
  EXPECT_GE(last["exposed_communication_ms"].get<double>(), 0);
  EXPECT_GE(last["update_exposed_ms"].get<double>(), 0);
  EXPECT_LE(last["update_exposed_ms"].get<double>(), last["step_ms"].get<double>());
  if (GetParam().expert_group == 1) return;
  EXPECT_EQ(last["exchange_rows_limit"], config.data.seq_len * config.parallel.expert_group);
  EXPECT_LE(last["exchange_rows_max"], last["exchange_rows_limit"]);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Counters,
                         testing::Values(World{.ranks = 2}, World{.ranks = 4, .expert_group = 2},
                                         World{.ranks = 6, .expert_group = 3, .ranks_per_node = 3},
                                         World{.ranks = 4, .expert_group = 2, .router_groups = 2},
                                         World{.ranks_per_node = 2,
                                               .choices = {"dense.reshard=node", "micro_batch.rows=1",
                                                           "micro_batch.reduce=each", "reuse_embedding=false"}},
                                         World{.ranks_per_node = 2,
                                               .choices = {"keep_gathered=true", "micro_batch.rows=2"}},
                                         World{.ranks = 4, .ranks_per_node = 2}, World{.ranks = 3, .ranks_per_node = 2},
                                         World{.ranks = 4, .replicas = 2, .ranks_per_node = 2},
                                         World{.ranks = 4,
                                               .expert_group = 2,
                                               .ranks_per_node = 2,
                                               .dense = "fp32_reduce_scatter",
                                               .experts = "bf16_all_to_all",
                                               .gather = "fp8"}));

}  // namespace
}  // namespace ganymede::test
