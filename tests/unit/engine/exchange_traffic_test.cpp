#include <gtest/gtest.h>

#include <numeric>

#include "common/plan/exchange_form.h"
#include "tests/unit/engine/test_world.h"

/// What the uneven form of the exchange sends, held against routes that are known from elsewhere.
namespace ganymede::worker {
namespace {

/// Rows that a rank sends to others, and that others send to it, of all rows of text and layers, in one direction.
struct Routes {
  std::int64_t sent = 0, came = 0;
};

/// A dispatch happens in forward and again in backward, then with gradients; each tells every other place how many
/// rows come. A combine brings hidden states back, in backward gradients and those of the weights.
void expect_bytes(TestWorld& world, const config::Config& config, int rank, const Routes& routes) {
  plan::ExchangeForm form = plan::exchange_form(config);
  ASSERT_FALSE(form.even);
  std::int64_t row = form.hidden * form.element, choices = form.top_k * 8, weights = form.top_k * 4;
  std::int64_t layers = config.model.layers - config.model.dense_layers;
  std::int64_t dispatches = 2 * layers * config.data.rows_per_step / config.parallel.ranks;
  EXPECT_EQ(world.moved(rank, "dispatch").all(),
            routes.sent * (3 * row + 2 * choices) + dispatches * (form.places - 1) * 8)
      << "rank " << rank;
  EXPECT_EQ(world.moved(rank, "combine").all(), routes.came * (2 * row + weights)) << "rank " << rank;
  EXPECT_EQ(world.moved(rank, "dispatch").between + world.moved(rank, "combine").between, 0);
}

/// Rows of text repeat after 39, so every rank computes the same ones; and a token has one expert: the counts of the
/// step's record, divided by the ranks, are the routes of each.
config::Config same_rows_everywhere(int ranks) {
  config::Config config = tiny_config();
  config.parallel.ranks = config.parallel.expert_group = ranks;
  config.model.vocabulary = 7;
  config.model.top_k = 1;
  config.data.rows_per_step = 39 * ranks;
  return config;
}

/// Tokens whose expert lies on each rank, of all layers and of the rows of one rank.
std::vector<std::int64_t> visitors(TestWorld& world, const config::Config& config) {
  auto places = static_cast<std::size_t>(world.size()), experts = static_cast<std::size_t>(config.model.experts);
  std::vector<std::int64_t> all(places, 0);
  auto counts = world.cell(0).control().expert_counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(counts[i] % world.size(), 0);
    all[i % experts / (experts / places)] += counts[i] / world.size();
  }
  return all;
}

class UnevenRoutes : public testing::TestWithParam<int> {};

TEST_P(UnevenRoutes, AreWhatTheCountersOfEveryRankSay) {
  config::Config config = same_rows_everywhere(GetParam());
  TestWorld world(config);
  world.step(1);
  auto to = visitors(world, config);
  std::int64_t all = std::accumulate(to.begin(), to.end(), std::int64_t{0});
  ASSERT_EQ(all, 39 * config.data.seq_len * (config.model.layers - config.model.dense_layers));
  ASSERT_NE(to.front(), to.back()) << "the routes are uneven";
  for (int rank = 0; rank < world.size(); ++rank) {
    std::int64_t here = to[static_cast<std::size_t>(rank)];
    expect_bytes(world, config, rank, {.sent = all - here, .came = here * (world.size() - 1)});
  }
}

INSTANTIATE_TEST_SUITE_P(Places, UnevenRoutes, testing::Values(2, 4));

/// A router of as many groups as there are places: every token has an expert at each.
TEST(UnevenRoute, OfATokenWithExpertsEverywhereGoesOnceToEachPlace) {
  for (config::Dtype dtype : {config::Dtype::fp32, config::Dtype::bf16}) {
    config::Config config = tiny_config();
    config.parallel.ranks = 4;
    config.parallel.expert_group = 2;
    config.model.top_k = 4;
    config.model.experts = 8;
    config.model.router_groups = 2;
    config.expert_exchange = config::ExpertExchange::uneven;
    config.compute.dtype = dtype;
    auto wire = dtype == config::Dtype::bf16 ? config::ParameterWire::bf16 : config::ParameterWire::fp32;
    config.wire.dense_gather = config.wire.expert_gather = wire;
    TestWorld world(config);
    world.step(1);
    std::int64_t tokens = config.data.seq_len * config.data.rows_per_step / config.parallel.ranks *
                          (config.model.layers - config.model.dense_layers);
    for (int rank = 0; rank < world.size(); ++rank) expect_bytes(world, config, rank, {tokens, tokens});
  }
}

}  // namespace
}  // namespace ganymede::worker
