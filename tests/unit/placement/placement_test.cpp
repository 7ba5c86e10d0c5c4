#include "common/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "common/base/error.h"
#include "common/placement/expert_range.h"

namespace ganymede::placement {
namespace {

using model_spec::BucketKind;

config::Config config_of(int ranks, int expert_group, int replicas = 1) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  config.model.hidden = 48;
  config.model.vocabulary = 257;  // rows that nothing divides
  config.model.layers = 3;
  config.model.heads = 3;  // vectors shorter than `alignment`, so that there are gaps
  config.model.kv_heads_sliding = 1;
  config.model.experts = 8;
  return config;
}

class EveryWorld : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int expert_group() const { return std::get<1>(GetParam()); }
  int replicas() const { return std::get<2>(GetParam()); }
  int shard_group() const { return ranks() / replicas(); }
  config::Config config() const { return config_of(ranks(), expert_group(), replicas()); }
};

TEST_P(EveryWorld, ReplicasOwnEveryElementOnceAndAnswerForItOnce) {
  std::vector<std::vector<int>> owners, answering;
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    if (owners.empty()) {
      for (const auto& parameter : placement.parameters) owners.emplace_back(parameter.elements());
      answering = owners;
    }
    for (const OwnedRange& range : placement.owned) {
      ASSERT_LE(range.first + range.count, placement.parameters[range.parameter].elements());
      for (std::int64_t i = 0; i < range.count; i++) {
        owners[range.parameter][range.first + i]++;
        answering[range.parameter][range.first + i] += range.replica == placement.replica;
      }
    }
  }
  for (const auto& parameter : owners) EXPECT_THAT(parameter, testing::Each(replicas()));
  for (const auto& parameter : answering) EXPECT_THAT(parameter, testing::Each(1));
}

TEST_P(EveryWorld, ReplicasHoldTheSameShardsInTheSamePlaces) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank), first = build(config(), rank % shard_group());
    EXPECT_EQ(placement.replica_ranks[placement.replica], rank);
    EXPECT_EQ(placement.replica_ranks[0], first.rank);
    EXPECT_EQ(placement.shard_ranks[placement.shard_index], rank);
    EXPECT_EQ(placement.shard_elements, first.shard_elements);
    ASSERT_EQ(placement.chunks.size(), first.chunks.size());
    for (std::size_t i = 0; i < first.chunks.size(); i++) {
      EXPECT_EQ(placement.chunks[i].shard_offset, first.chunks[i].shard_offset);
      EXPECT_EQ(placement.chunks[i].parameter, first.chunks[i].parameter);
      EXPECT_EQ(placement.chunks[i].replica, first.chunks[i].replica);
    }
    for (std::size_t b = 0; b < first.buckets.size(); b++) {
      EXPECT_EQ(placement.buckets[b].cut, first.buckets[b].cut);
      EXPECT_EQ(placement.buckets[b].slice, first.buckets[b].slice);
      ASSERT_EQ(placement.buckets[b].slice.size(), replicas() + 1u);
      EXPECT_EQ(placement.buckets[b].slice.front(), placement.buckets[b].shard_begin());
      EXPECT_EQ(placement.buckets[b].slice.back() - placement.buckets[b].slice.front(),
                placement.buckets[b].shard_elements());
    }
  }
}

TEST_P(EveryWorld, EachReplicaHoldsItsSliceWhenTheStateIsSharded) {
  config::Config sharded = config();
  sharded.replicas.state = config::ReplicaState::sharded;
  std::vector<std::vector<int>> owners;
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(sharded, rank), all = build(config(), rank);
    if (owners.empty()) {
      for (const auto& parameter : placement.parameters) owners.emplace_back(parameter.elements());
    }
    for (const OwnedRange& range : placement.owned) {
      EXPECT_EQ(range.replica, placement.replica);
      for (std::int64_t i = 0; i < range.count; i++) owners[range.parameter][range.first + i]++;
    }
    std::int64_t held = 0, counted = 0;
    for (std::size_t b = 0; b < placement.buckets.size(); b++) {
      const Bucket& bucket = placement.buckets[b];
      EXPECT_EQ(bucket.cut, all.buckets[b].cut);
      EXPECT_EQ(bucket.slice, all.buckets[b].slice);
      EXPECT_EQ(bucket.shard_offset, held);
      held += aligned(bucket.shard_elements());
    }
    for (const Chunk& chunk : placement.chunks) counted += chunk.count;
    EXPECT_EQ(placement.shard_elements, std::max(held, alignment));
    EXPECT_LE(counted, held);
    EXPECT_GE(counted + alignment * static_cast<std::int64_t>(placement.buckets.size()), held);
  }
  for (const auto& parameter : owners) EXPECT_THAT(parameter, testing::Each(1));
}

TEST_P(EveryWorld, CutsLieAtRowsAndWhatTheUnitNamesStaysWhole) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    for (const OwnedRange& range : placement.owned) {
      const auto& parameter = placement.parameters[range.parameter];
      EXPECT_EQ(range.first % parameter.row_elements(), 0) << parameter.name;
      EXPECT_EQ(range.count % parameter.row_elements(), 0) << parameter.name;
      if (placement.buckets[range.bucket].unit == CutUnit::rows || replicas() > 1) continue;
      EXPECT_EQ(range.count, parameter.elements()) << parameter.name;
    }
  }
}

TEST_P(EveryWorld, MembersOfABucketAgreeOnItsCuts) {
  std::map<std::pair<std::string, std::vector<int>>, std::vector<std::int64_t>> cuts;
  for (int rank = 0; rank < ranks(); rank++) {
    for (const Bucket& bucket : build(config(), rank).buckets) {
      ASSERT_EQ(bucket.cut.size(), bucket.group.size() + 1);
      EXPECT_EQ(bucket.cut.front(), 0);
      EXPECT_EQ(bucket.cut.back(), bucket.elements);
      EXPECT_TRUE(std::is_sorted(bucket.cut.begin(), bucket.cut.end()));
      EXPECT_EQ(bucket.group[bucket.index_in_group], rank);
      auto [at, fresh] = cuts.try_emplace({bucket.name, bucket.group}, bucket.cut);
      EXPECT_EQ(at->second, bucket.cut);
    }
  }
}

TEST_P(EveryWorld, ParametersStartAlignedAndDoNotOverlap) {
  Placement placement = build(config(), ranks() - 1);
  for (const Bucket& bucket : placement.buckets) {
    std::int64_t free_from = 0;
    for (const PlacedParameter& placed : bucket.parameters) {
      bool up = placement.parameters[placed.parameter].name.ends_with(".up_proj.weight");
      bool joined = bucket.kind == BucketKind::experts && up;
      EXPECT_TRUE(joined || placed.offset % alignment == 0);
      EXPECT_GE(placed.offset, free_from);
      EXPECT_LT(placed.offset - free_from, alignment);
      free_from = placed.offset + placement.parameters[placed.parameter].elements();
    }
    EXPECT_GE(bucket.elements, free_from);
    EXPECT_EQ(bucket.elements % alignment, 0);
  }
}

TEST_P(EveryWorld, GateAndUpOfAnExpertLieNextToEachOther) {
  Placement placement = build(config(), 0);
  const Bucket& bucket = placement.buckets[placement.bucket("layer.1.experts")];
  ASSERT_EQ(bucket.parameters.size(), 3u * placement.local_experts);
  for (std::size_t i = 0; i < bucket.parameters.size(); i += 3) {
    const auto& gate = placement.parameters[bucket.parameters[i].parameter];
    EXPECT_EQ(bucket.parameters[i].offset + gate.elements(), bucket.parameters[i + 1].offset);
    EXPECT_EQ(gate.expert, placement.first_expert + static_cast<int>(i / 3));
  }
}

TEST_P(EveryWorld, ChunksCoverTheShardOnceInOrder) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    std::vector<std::int64_t> next;
    for (const Bucket& bucket : placement.buckets) next.push_back(bucket.shard_offset);
    int bucket_before = 0;
    for (const Chunk& chunk : placement.chunks) {
      EXPECT_GT(chunk.count, 0);
      EXPECT_LE(chunk.count, chunk_elements);
      EXPECT_GE(chunk.bucket, bucket_before) << "buckets complete in forward order";
      EXPECT_EQ(chunk.shard_offset, next[chunk.bucket]) << "no hole and no overlap";
      next[chunk.bucket] += chunk.count;
      bucket_before = chunk.bucket;
    }
    for (std::size_t i = 0; i < next.size(); i++) {
      EXPECT_EQ(next[i], placement.buckets[i].shard_offset + placement.buckets[i].shard_elements());
    }
  }
}

TEST_P(EveryWorld, NoChunkCrossesParameters) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    for (const Chunk& chunk : placement.chunks) {
      if (chunk.parameter < 0) {
        EXPECT_LT(chunk.count, alignment) << "a gap";
        continue;
      }
      bool inside = false;
      for (const OwnedRange& range : placement.owned) {
        inside |= range.parameter == chunk.parameter && range.bucket == chunk.bucket && chunk.first >= range.first &&
                  chunk.first + chunk.count <= range.first + range.count &&
                  chunk.shard_offset - range.shard_offset == chunk.first - range.first;
      }
      EXPECT_TRUE(inside) << chunk.shard_offset;
    }
  }
}

TEST_P(EveryWorld, ShardsOfBucketsAreAlignedAndFillTheArray) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    std::int64_t end = 0;
    for (const Bucket& bucket : placement.buckets) {
      EXPECT_EQ(bucket.shard_offset, end);
      EXPECT_EQ(bucket.shard_offset % alignment, 0);
      end = (bucket.shard_offset + bucket.shard_elements() + alignment - 1) / alignment * alignment;
    }
    EXPECT_EQ(placement.shard_elements, end);
  }
}

TEST_P(EveryWorld, ExpertGroupsAreConsecutiveRanks) {
  for (int rank = 0; rank < ranks(); rank++) {
    Placement placement = build(config(), rank);
    EXPECT_EQ(placement.expert_ranks[placement.expert_place], rank);
    EXPECT_EQ(placement.expert_ranks.front() % expert_group(), 0);
    ExpertRange experts = experts_of_place(8, expert_group(), placement.expert_place);
    EXPECT_EQ(placement.first_expert, experts.first);
    EXPECT_EQ(placement.local_experts, experts.count);
    for (const Bucket& bucket : placement.buckets) {
      int expected = bucket.kind == BucketKind::experts ? shard_group() / expert_group() : shard_group();
      EXPECT_EQ(bucket.group.size(), expected) << bucket.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placement, EveryWorld,
                         testing::Values(std::tuple{1, 1, 1}, std::tuple{2, 1, 1}, std::tuple{3, 1, 1},
                                         std::tuple{4, 1, 1}, std::tuple{5, 1, 1}, std::tuple{6, 1, 1},
                                         std::tuple{2, 2, 1}, std::tuple{4, 2, 1}, std::tuple{6, 2, 1},
                                         std::tuple{4, 4, 1}, std::tuple{4, 1, 4}, std::tuple{4, 2, 2},
                                         std::tuple{6, 1, 2}, std::tuple{12, 2, 2}, std::tuple{12, 1, 4},
                                         // 8 experts over places that do not divide them
                                         std::tuple{3, 3, 1}, std::tuple{5, 5, 1}, std::tuple{6, 3, 1},
                                         std::tuple{9, 3, 1}, std::tuple{6, 6, 1}, std::tuple{12, 3, 2}));

TEST(Placement, MoreRanksThanRowsOfABucketWork) {
  config::Config config = config_of(6, 1);
  config.model = config::Model{};
  config.model.vocabulary = 4;
  config.model.experts = 0;
  std::int64_t rows = 0;
  for (int rank = 0; rank < 6; rank++) {
    Placement placement = build(config, rank);
    for (const OwnedRange& range : placement.owned)
      rows += placement.parameters[range.parameter].name == "model.embed_tokens.weight" ? range.count / 64 : 0;
  }
  EXPECT_EQ(rows, 4);
}

void expect_refused(const config::Config& config, int rank, const std::string& part) {
  try {
    build(config, rank);
    ADD_FAILURE() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

TEST(Placement, RefusesWhatCannotWork) {
  config::Config config = config_of(6, 4);
  expect_refused(config, 0, "parallel.expert_group = 1 · 4: the nearest that is one is 4");
  expect_refused(config_of(9, 9), 0, "parallel.expert_group = 9 is more than the model.experts = 8 of a layer");
  expect_refused(config_of(2, 1), 2, "rank 2");
  expect_refused(config_of(5, 1, 2), 0, "the nearest that is one is 4");
  expect_refused(config_of(6, 2, 2), 0, "the nearest that is one is 4");
  expect_refused(config_of(1, 2, 4), 0, "the nearest that is one is 8");
}

TEST(Placement, ARankThatOwnsNothingHasAChunkWithoutElements) {
  config::Config config = config_of(200, 1);
  config.model = config::Model{};
  config.model.vocabulary = 4;
  config.model.experts = 0;
  config.model.layers = 1;
  config.model.hidden = config.model.ffn = config.model.heads = config.model.qk_dim = config.model.v_dim = 1;
  config.model.kv_heads_global = config.model.kv_heads_sliding = 1;
  int without_elements = 0;
  for (int rank = 0; rank < 200; rank++) {
    Placement placement = build(config, rank);
    EXPECT_GE(placement.shard_elements, alignment);
    ASSERT_FALSE(placement.chunks.empty());
    EXPECT_EQ(placement.owned.empty(), placement.chunks.back().parameter < 0 && placement.chunks.size() == 1);
    without_elements += placement.chunks[0].count == 0;
  }
  EXPECT_GT(without_elements, 0);
}

}  // namespace
}  // namespace ganymede::placement
