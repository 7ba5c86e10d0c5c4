#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/placement/cutting.h"
#include "common/placement/placement.h"

namespace ganymede::placement {
namespace {

using model_spec::BucketKind;

struct Sizes {
  int hidden, expert_ffn, layers;
};

config::Config config_of(const Sizes& sizes, int experts, int ranks, int expert_group, int replicas = 1) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  config.model.vocabulary = 257;
  config.model.hidden = sizes.hidden;
  config.model.expert_ffn = sizes.expert_ffn;
  config.model.layers = sizes.layers;
  config.model.dense_layers = 0;
  config.model.experts = experts;
  config.model.top_k = 1;
  config.model.ffn = 2 * sizes.hidden;
  config.model.heads = 3;
  config.model.kv_heads_global = config.model.kv_heads_sliding = 1;
  return config;
}

/// Elements of each rank of the shard group, in all buckets; and the unit of the experts.
struct Shares {
  std::vector<std::int64_t> elements;
  CutUnit unit = CutUnit::rows;
};

/// From one placement a place: each knows the cuts of all who share its buckets.
Shares shares_of(const config::Config& config) {
  Shares shares;
  shares.elements.assign(config.parallel.ranks / config.parallel.replicas, 0);
  for (int place = 0; place < config.parallel.expert_group; place++) {
    for (const Bucket& bucket : build(config, place).buckets) {
      bool experts = bucket.kind == BucketKind::experts;
      if (!experts && place > 0) continue;
      if (experts) shares.unit = bucket.unit;
      for (std::size_t i = 0; i < bucket.group.size(); i++) {
        shares.elements[bucket.group[i]] += bucket.cut[i + 1] - bucket.cut[i];
      }
    }
  }
  return shares;
}

void expect_balanced(const std::vector<std::int64_t>& elements, const std::string& world) {
  auto [least, most] = std::minmax_element(elements.begin(), elements.end());
  EXPECT_LE(static_cast<double>(*most), 1.05 * static_cast<double>(*least)) << world;
}

class EveryRatio : public testing::TestWithParam<Sizes> {};

TEST_P(EveryRatio, RanksHoldTheSameBytesWithinFivePercent) {
  for (int expert_group : {1, 2, 4}) {
    for (int experts = expert_group; experts <= 48; experts += expert_group) {
      for (int ranks = expert_group; ranks <= 12; ranks += expert_group) {
        Shares shares = shares_of(config_of(GetParam(), experts, ranks, expert_group));
        expect_balanced(shares.elements,
                        fmt::format("{} experts, {} ranks, expert group {}", experts, ranks, expert_group));
        bool divisible = experts / expert_group % (ranks / expert_group) == 0;
        EXPECT_EQ(shares.unit == CutUnit::experts, divisible);
      }
    }
  }
}

TEST_P(EveryRatio, MatricesLieWholeWhereTheUnitSaysSo) {
  for (int experts : {1, 2, 5, 7, 8, 31}) {
    for (int ranks = 1; ranks <= 12; ranks++) {
      Placement placement = build(config_of(GetParam(), experts, ranks, 1), ranks - 1);
      for (const Bucket& bucket : placement.buckets) {
        if (bucket.unit == CutUnit::rows) continue;
        std::set<std::int64_t> borders = {bucket.elements};
        for (const PlacedParameter& placed : bucket.parameters) {
          bool first = placement.parameters[placed.parameter].name.ends_with(".gate_proj.weight");
          if (first || bucket.unit == CutUnit::matrices) borders.insert(placed.offset);
        }
        for (std::int64_t cut : bucket.cut) EXPECT_TRUE(borders.contains(cut)) << experts << " " << ranks;
      }
    }
  }
}

TEST_P(EveryRatio, ReplicasAnswerForTheSameBytesWithinFivePercent) {
  for (auto [ranks, replicas] : {std::pair{2, 2}, {4, 2}, {4, 4}, {6, 2}, {6, 3}}) {
    config::Config config = config_of(GetParam(), 8, ranks, 1, replicas);
    std::map<int, std::vector<std::int64_t>> by_shard;
    for (int rank = 0; rank < ranks; rank++) {
      Placement placement = build(config, rank);
      std::int64_t answered = 0;
      for (const Bucket& bucket : placement.buckets) {
        answered += bucket.slice[placement.replica + 1] - bucket.slice[placement.replica];
      }
      by_shard[placement.shard_index].push_back(answered);
    }
    for (const auto& [index, elements] : by_shard) expect_balanced(elements, fmt::format("{}/{}", ranks, replicas));
  }
}

// The usual one, sizes that nothing divides, one MoE layer alone, and experts that are most of the model.
INSTANTIATE_TEST_SUITE_P(Placement, EveryRatio,
                         testing::Values(Sizes{48, 32, 3}, Sizes{37, 11, 4}, Sizes{32, 16, 1}, Sizes{24, 240, 2}));

TEST(CutUnit, IsTheCoarsestThatBalances) {
  Sizes usual{48, 32, 5}, experts_alone{16, 400, 1};
  EXPECT_EQ(shares_of(config_of(usual, 8, 4, 1)).unit, CutUnit::experts);
  EXPECT_EQ(shares_of(config_of(usual, 8, 8, 4)).unit, CutUnit::experts);
  EXPECT_EQ(shares_of(config_of(usual, 8, 6, 1)).unit, CutUnit::matrices);
  EXPECT_EQ(shares_of(config_of(usual, 8, 6, 2)).unit, CutUnit::matrices);
  EXPECT_EQ(shares_of(config_of(experts_alone, 2, 6, 1)).unit, CutUnit::matrices);  // one matrix each
  EXPECT_EQ(shares_of(config_of(experts_alone, 2, 4, 1)).unit, CutUnit::rows);
  EXPECT_EQ(shares_of(config_of(experts_alone, 1, 7, 1)).unit, CutUnit::rows);
}

TEST(CutUnit, OwnersOfTheMatricesThatDoNotDivideRotateFromLayerToLayer) {
  Placement placement = build(config_of({48, 32, 6}, 7, 6, 1), 0);  // 21 matrices a layer over 6 ranks
  std::set<std::vector<std::int64_t>> patterns;
  std::vector<std::int64_t> matrices(6, 0);
  for (const Bucket& bucket : placement.buckets) {
    if (bucket.kind != BucketKind::experts) continue;
    ASSERT_EQ(bucket.unit, CutUnit::matrices);
    patterns.insert(bucket.cut);
    for (int i = 0; i < 6; i++) {
      std::int64_t held = (bucket.cut[i + 1] - bucket.cut[i]) / (48 * 32);
      EXPECT_TRUE(held == 3 || held == 4);
      matrices[i] += held;
    }
  }
  EXPECT_GE(patterns.size(), 2u);
  auto [least, most] = std::minmax_element(matrices.begin(), matrices.end());
  EXPECT_LE(*most - *least, 1);
}

TEST(LevelShares, FillTheLowestFirst) {
  EXPECT_EQ(level_shares(std::vector<std::int64_t>{0, 0, 0}, 9), (std::vector<std::int64_t>{3, 3, 3}));
  EXPECT_EQ(level_shares(std::vector<std::int64_t>{5, 1, 0}, 3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(level_shares(std::vector<std::int64_t>{2, 0, 1}, 9), (std::vector<std::int64_t>{2, 4, 3}));
  EXPECT_EQ(level_shares(std::vector<std::int64_t>{7}, 4), (std::vector<std::int64_t>{4}));
}

}  // namespace
}  // namespace ganymede::placement
