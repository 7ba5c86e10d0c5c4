#include "common/placement/matrices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/builtin_facts.h"

namespace ganymede::placement {
namespace {

config::Config muon_config(int ranks, int expert_group = 1, int replicas = 1) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  config.model.hidden = 48;
  config.model.layers = 3;
  config.model.heads = 3;
  config.model.kv_heads_sliding = 1;
  config.model.experts = 6;
  config.optimizer.name = "muon";
  config.optimizer.groups["rest"].optimizer = "adamw";
  return config;
}

Placement placed(const config::Config& config, int rank) { return build(config, rank, builtin_facts()); }

class MatrixWorlds : public testing::TestWithParam<config::Parallel> {
 protected:
  config::Config config() const { return muon_config(GetParam().ranks, GetParam().expert_group, GetParam().replicas); }
};

/// All members of a bucket's group say the same of its matrices, and what one sends another receives.
TEST_P(MatrixWorlds, RanksAgreeOnMatricesOwnersAndWhatTravels) {
  int ranks = config().parallel.ranks;
  std::vector<Placement> placements;
  std::vector<std::vector<BucketMatrices>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    placements.push_back(placed(config(), rank));
    all.push_back(matrices_of(placements.back()));
  }
  bool any = false;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t b = 0; b < all[rank].size(); ++b) {
      const Bucket& bucket = placements[rank].buckets[b];
      for (std::size_t member = 0; member < bucket.group.size(); ++member) {
        const BucketMatrices &mine = all[rank][b], &theirs = all[bucket.group[member]][b];
        ASSERT_EQ(mine.matrices.size(), theirs.matrices.size());
        for (std::size_t i = 0; i < mine.matrices.size(); ++i) {
          EXPECT_EQ(mine.matrices[i].parameter, theirs.matrices[i].parameter);
          EXPECT_EQ(mine.matrices[i].owner, theirs.matrices[i].owner);
        }
        auto own = static_cast<std::size_t>(bucket.index_in_group);
        EXPECT_EQ(mine.sent[member + 1] - mine.sent[member], theirs.received[own + 1] - theirs.received[own]);
        any = any || mine.sent.back() > 0;
      }
    }
  }
  EXPECT_EQ(any, placements[0].shard_group > 1);
}

/// Rows of a matrix are those that the ranks hold, each once.
TEST_P(MatrixWorlds, PartsAreTheRowsThatTheRanksHold) {
  std::map<std::pair<int, int>, std::int64_t> held;  // elements, by rank and parameter
  for (int rank = 0; rank < config().parallel.ranks; ++rank) {
    Placement placement = placed(config(), rank);
    for (const OwnedRange& range : placement.owned) {
      if (range.replica == placement.replica || !placement.sharded_state) held[{rank, range.parameter}] += range.count;
    }
  }
  Placement placement = placed(config(), 0);
  std::vector<BucketMatrices> all = matrices_of(placement);
  int matrices = 0;
  for (std::size_t b = 0; b < all.size(); ++b) {
    for (const Matrix& matrix : all[b].matrices) {
      ++matrices;
      EXPECT_TRUE(placement.parameters[matrix.parameter].hidden_matrix());
      std::int64_t next = 0;
      for (const MatrixPart& part : matrix.parts) {
        EXPECT_EQ(part.first_row, next);
        next += part.rows;
        auto elements = held[{placement.buckets[b].group[part.member], matrix.parameter}];
        EXPECT_EQ(elements, part.rows * matrix.columns);
      }
      EXPECT_EQ(next, matrix.rows);
    }
  }
  EXPECT_GT(matrices, 0);
}

TEST_P(MatrixWorlds, FirstPhasesComeFirstAndEveryElementIsInEachPhaseOnce) {
  Placement placement = placed(config(), 0);
  std::map<Phase, std::int64_t> elements;
  bool later = false;
  for (const Chunk& chunk : placement.chunks) {
    if (chunk.parameter < 0) continue;
    later = later || chunk.phase != Phase::state;
    EXPECT_TRUE(chunk.phase != Phase::state || !later) << "a first phase after another";
    EXPECT_EQ(chunk.phase == Phase::whole, !placement.update.optimizer_of(chunk.parameter).matrices);
    elements[chunk.phase] += chunk.count;
  }
  EXPECT_EQ(elements[Phase::state], elements[Phase::master]);
  EXPECT_GT(elements[Phase::state], 0);
  std::int64_t owned = 0;
  for (const OwnedRange& range : placement.owned) owned += range.count;
  EXPECT_EQ(elements[Phase::master] + elements[Phase::whole], owned);
}

/// No two ranges of state or of matrices share an element of a column.
TEST_P(MatrixWorlds, StateOfDifferentRangesLiesApart) {
  Placement placement = placed(config(), config().parallel.ranks - 1);
  for (std::size_t column = 0; column <= placement.columns.size(); ++column) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const OwnedRange& range : placement.owned) {
      bool matrices = column == placement.columns.size();
      bool has = matrices ? placement.update.optimizer_of(range.parameter).matrices
                          : placement.slots_of(range.parameter) > column;
      std::int64_t at = matrices ? range.matrix_offset : range.state_offset[column];
      if (has) taken.emplace_back(at, at + range.count);
    }
    std::sort(taken.begin(), taken.end());
    for (std::size_t i = 1; i < taken.size(); ++i) EXPECT_LE(taken[i - 1].second, taken[i].first);
    std::int64_t room = column == placement.columns.size() ? placement.matrix_elements : placement.columns[column];
    EXPECT_LE(taken.back().second, room);
  }
}

/// Whoever cuts a matrix, into ranks, chunks or pieces of them: each row's value has one place.
TEST_P(MatrixWorlds, EveryRowHasOneValueAndOnePlace) {
  config::Config config = this->config();
  config.optimizer.name = "normuon";
  std::map<int, std::int64_t> held;  // rows of a parameter, over the ranks of replica 0
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    Placement placement = placed(config, rank);
    std::vector<std::pair<std::int64_t, std::int64_t>> columns, matrices;
    std::map<int, std::int64_t> next;  // by owned range
    for (const OwnedRange& range : placement.owned) {
      StateRun run = placement.state_run(range, 1);
      columns.emplace_back(run.offset, run.offset + run.count);
      if (!placement.per_row(range.parameter, 1)) continue;
      ASSERT_EQ(run.count * placement.parameters[range.parameter].row_elements(), range.count);
      matrices.emplace_back(range.matrix_offset, range.matrix_offset + range.count);
      matrices.emplace_back(range.row_values_offset, range.row_values_offset + run.count);
      if (placement.replica == 0) held[range.parameter] += run.count;
    }
    for (auto* all : {&columns, &matrices}) {
      std::sort(all->begin(), all->end());
      for (std::size_t i = 1; i < all->size(); ++i) EXPECT_LE((*all)[i - 1].second, (*all)[i].first);
      EXPECT_LE(all->back().second, all == &columns ? placement.columns[1] : placement.matrix_elements);
    }
    for (const Chunk& chunk : placement.chunks) {
      if (chunk.phase != Phase::state) continue;
      const OwnedRange& range = placement.owned[static_cast<std::size_t>(chunk.owned)];
      std::int64_t pieces = 0;
      for (std::int64_t at = 0; at < chunk.count; at += 7) {
        StateRun piece = placement.state_run(range, chunk.first + at, std::min<std::int64_t>(7, chunk.count - at), 1);
        EXPECT_EQ(piece.offset, placement.state_run(chunk, 1).offset + pieces);
        pieces += piece.count;
      }
      EXPECT_EQ(pieces, placement.state_run(chunk, 1).count);
      EXPECT_EQ(placement.state_run(chunk, 1).offset, range.state_offset[1] + next[chunk.owned]);
      next[chunk.owned] += pieces;
    }
  }
  Placement placement = placed(config, 0);
  int experts = 0;
  for (const auto& [parameter, rows] : held) {
    EXPECT_EQ(rows, placement.parameters[parameter].rows()) << placement.parameters[parameter].name;
    experts += placement.parameters[parameter].bucket == model_spec::BucketKind::experts;
  }
  EXPECT_GT(experts, 0);
}

TEST_P(MatrixWorlds, ValuesOfRowsTravelWithThem) {
  config::Config with = config();
  with.optimizer.name = "normuon";
  for (int rank = 0; rank < with.parallel.ranks; ++rank) {
    std::vector<BucketMatrices> muon = matrices_of(placed(config(), rank)), normuon = matrices_of(placed(with, rank));
    Placement placement = placed(with, rank);
    for (std::size_t b = 0; b < muon.size(); ++b) {
      std::int64_t rows = 0;
      int own = placement.buckets[b].index_in_group;
      for (const Matrix& matrix : normuon[b].matrices) {
        EXPECT_EQ(matrix.row_slots, 1);
        for (const MatrixPart& part : matrix.parts) rows += part.member == own && matrix.owner != own ? part.rows : 0;
      }
      EXPECT_EQ(normuon[b].sent.back(), muon[b].sent.back() + rows);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, MatrixWorlds,
                         testing::Values(config::Parallel{1, 1, 1}, config::Parallel{2, 1, 1},
                                         config::Parallel{3, 1, 1}, config::Parallel{4, 2, 1},
                                         config::Parallel{4, 1, 2}, config::Parallel{5, 1, 1},
                                         config::Parallel{6, 3, 1}),
                         [](const auto& world) {
                           return "Ranks" + std::to_string(world.param.ranks) + "Group" +
                                  std::to_string(world.param.expert_group) + "Replicas" +
                                  std::to_string(world.param.replicas);
                         });

TEST(Matrices, WorkIsSharedOut) {
  config::Config config = muon_config(3);
  config.model.layers = 6;
  Placement placement = placed(config, 0);
  std::map<int, double> work;
  for (const BucketMatrices& bucket : matrices_of(placement)) {
    for (const Matrix& matrix : bucket.matrices) {
      work[matrix.owner] += static_cast<double>(matrix.rows * matrix.columns * std::min(matrix.rows, matrix.columns));
    }
  }
  ASSERT_EQ(work.size(), 3u);
  auto [least, most] = std::minmax({work[0], work[1], work[2]});
  EXPECT_LT(most, 1.25 * least);
}

}  // namespace
}  // namespace ganymede::placement
