#include "common/placement/expert_range.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/placement/placement.h"

/// Experts that the places of an expert group cannot share evenly.
namespace ganymede::placement {
namespace {

using model_spec::BucketKind;

std::vector<int> counts(int experts, int places) {
  std::vector<int> all;
  for (int place = 0; place < places; place++) all.push_back(experts_of_place(experts, places, place).count);
  return all;
}

TEST(ExpertRange, TheFirstPlacesHoldOneMore) {
  EXPECT_EQ(counts(6, 4), (std::vector<int>{2, 2, 1, 1}));
  EXPECT_EQ(counts(5, 2), (std::vector<int>{3, 2}));
  EXPECT_EQ(counts(7, 3), (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(counts(8, 4), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(counts(3, 3), (std::vector<int>{1, 1, 1}));
}

TEST(ExpertRange, EveryExpertLiesAtThePlaceThatSaysSo) {
  for (int places = 1; places <= 9; places++) {
    for (int experts = places; experts <= 40; experts++) {
      int next = 0;
      for (int place = 0; place < places; place++) {
        ExpertRange range = experts_of_place(experts, places, place);
        EXPECT_EQ(range.first, next);
        for (int i = 0; i < range.count; i++) EXPECT_EQ(place_of_expert(experts, places, next++), place);
      }
      EXPECT_EQ(next, experts);
    }
  }
}

struct Ratio {
  int experts, places, sharers;
  int hidden = 48, expert_ffn = 32;
};

config::Config config_of(const Ratio& ratio) {
  config::Config config;
  config.parallel.ranks = ratio.places * ratio.sharers;
  config.parallel.expert_group = ratio.places;
  config.model.vocabulary = 257;
  config.model.hidden = ratio.hidden;
  config.model.expert_ffn = ratio.expert_ffn;
  config.model.layers = 4;
  config.model.dense_layers = 0;
  config.model.experts = ratio.experts;
  config.model.top_k = 1;
  config.model.ffn = 2 * ratio.hidden;
  config.model.heads = 3;
  config.model.kv_heads_global = config.model.kv_heads_sliding = 1;
  return config;
}

class UnevenRatio : public testing::TestWithParam<Ratio> {};

TEST_P(UnevenRatio, PlacesHoldTheirExpertsAndNobodyElses) {
  config::Config config = config_of(GetParam());
  std::vector<int> owners;
  for (int rank = 0; rank < config.parallel.ranks; rank++) {
    Placement placement = build(config, rank);
    owners.resize(placement.parameters.size());
    ExpertRange range = experts_of_place(GetParam().experts, GetParam().places, placement.expert_place);
    for (const Bucket& bucket : placement.buckets) {
      if (bucket.kind != BucketKind::experts) continue;
      EXPECT_EQ(bucket.parameters.size(), 3u * static_cast<std::size_t>(range.count));
      EXPECT_EQ(bucket.group.size(), static_cast<std::size_t>(GetParam().sharers));
      for (const PlacedParameter& placed : bucket.parameters) {
        int expert = placement.parameters[placed.parameter].expert;
        EXPECT_TRUE(expert >= range.first && expert < range.first + range.count);
        owners[placed.parameter]++;
      }
    }
  }
  for (std::size_t p = 0; p < owners.size(); p++) EXPECT_TRUE(owners[p] == 0 || owners[p] == GetParam().sharers);
  EXPECT_EQ(std::count(owners.begin(), owners.end(), GetParam().sharers), 4 * 3 * GetParam().experts);
}

/// No cut gives a place's ranks less than their part of its experts, nor all ranks less than their part of everything.
TEST_P(UnevenRatio, TheRankThatHoldsMostHasFivePercentMoreThanItMust) {
  config::Config config = config_of(GetParam());
  std::int64_t all = 0, held_most = 0, place_most = 0;
  std::set<CutUnit> units;
  for (int rank = 0; rank < config.parallel.ranks; rank++) {
    std::int64_t held = 0, of_place = 0;
    for (const Bucket& bucket : build(config, rank).buckets) {
      held += bucket.range_elements();
      if (bucket.kind != BucketKind::experts) continue;
      units.insert(bucket.unit);
      of_place += bucket.elements;
    }
    all += held;
    held_most = std::max(held_most, held);
    place_most = std::max(place_most, of_place / GetParam().sharers);
  }
  EXPECT_EQ(units.size(), 1u) << "all ranks cut experts alike";
  EXPECT_EQ(units.contains(CutUnit::experts), GetParam().sharers == 1);
  std::int64_t must = std::max(place_most, all / config.parallel.ranks);
  EXPECT_LE(static_cast<double>(held_most), 1.05 * static_cast<double>(must));
}

// The second list: experts that are nearly all of the model.
INSTANTIATE_TEST_SUITE_P(Placement, UnevenRatio,
                         testing::Values(Ratio{6, 4, 1}, Ratio{6, 4, 2}, Ratio{6, 4, 3}, Ratio{5, 2, 1}, Ratio{5, 2, 2},
                                         Ratio{5, 2, 3}, Ratio{5, 2, 5}, Ratio{7, 3, 1}, Ratio{7, 3, 2}, Ratio{7, 3, 4},
                                         Ratio{6, 4, 1, 24, 240}, Ratio{5, 2, 3, 24, 240}, Ratio{7, 3, 2, 24, 240},
                                         Ratio{7, 3, 5, 24, 240}, Ratio{3, 2, 7, 16, 400}),
                         [](const auto& test) {
                           const Ratio& r = test.param;
                           return fmt::format("Experts{}Places{}Sharers{}{}", r.experts, r.places, r.sharers,
                                              r.expert_ffn > 100 ? "Alone" : "");
                         });

}  // namespace
}  // namespace ganymede::placement
