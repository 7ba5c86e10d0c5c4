#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/numerics/optimizers/runs.h"

/// MuonClip's second phase against its formula in fp64, and against Muon's.
namespace ganymede::optimizer {
namespace {

constexpr std::uint32_t query_heads = 6, key_heads = 2, rows_per_head = 5, columns = 7;
constexpr double lr = 0.02, decay = 0.1, threshold = 100;
const double hyper[] = {0.95, 1, 0, threshold};
const std::vector<double> largest = {250, 90, 100, -3, 40, 12};  // of the first group one head is above, one at it

/// A projection and what became of its matrix.
struct Projection {
  explicit Projection(std::uint32_t role) : role(role) {
    heads = role == GANYMEDE_KEY ? key_heads : query_heads;
    std::size_t count = std::size_t{heads} * rows_per_head * columns;
    master = start(count, 0).value;
    orthogonal = gradients(3, count);
  }
  std::uint32_t role, heads = 0;
  std::vector<float> master, orthogonal;
};

/// Elements from … to - 1 of the new master.
void apply(const GanymedeOptimizer& table, const Projection& p, std::size_t from, std::size_t to,
           std::vector<float>& result) {
  GanymedeStep step{sizeof(GanymedeStep), table.hyper_parameter_count, 1, lr, decay, 1.0, hyper};
  const double* reductions[] = {largest.data()};
  const std::uint32_t counts[] = {p.role == 0 ? 0 : query_heads};
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 1;
  chunk.count = to - from;
  chunk.decayed = 1;
  chunk.first = from;
  chunk.rows = p.heads * rows_per_head;
  chunk.columns = columns;
  chunk.master = p.master.data() + from;
  chunk.orthogonal = p.orthogonal.data() + from;
  chunk.new_master = result.data() + from;
  chunk.reductions = reductions;
  chunk.reduction_counts = counts;
  chunk.role = p.role;
  chunk.query_heads = query_heads;
  chunk.key_heads = key_heads;
  chunk.rows_per_head = rows_per_head;
  ASSERT_EQ(table.apply_chunk(&step, &chunk), 0);
}

std::vector<float> applied(const std::string& name, const Projection& p) {
  std::vector<float> result(p.master.size());
  apply(plugin(name), p, 0, result.size(), result);
  return result;
}

double gamma(std::size_t head) { return std::min(1.0, threshold / std::max(largest[head], 1e-30)); }

/// Smallest factor of the query heads that share a key head.
double gamma_of_group(std::size_t key_head) {
  constexpr std::size_t group = query_heads / key_heads;
  double smallest = 1;
  for (std::size_t h = key_head * group; h < (key_head + 1) * group; h++) smallest = std::min(smallest, gamma(h));
  return smallest;
}

TEST(MuonClip, ScalesTheRowsOfEachHeadAsTheFormulaSays) {
  for (std::uint32_t role : {GANYMEDE_QUERY, GANYMEDE_KEY}) {
    Projection p(role);
    auto ours = applied("muonclip", p);
    double scale = std::sqrt(std::max(1.0, static_cast<double>(p.heads * rows_per_head) / columns));
    for (std::size_t i = 0; i < ours.size(); i++) {
      std::size_t head = i / columns / rows_per_head;
      double key = std::sqrt(gamma_of_group(role == GANYMEDE_KEY ? head : head / (query_heads / key_heads)));
      double factor = role == GANYMEDE_KEY ? key : gamma(head) / key;
      double expected = (p.master[i] * (1 - lr * decay) - lr * scale * p.orthogonal[i]) * factor;
      EXPECT_NEAR(ours[i], expected, 1e-8) << "role " << role << ", element " << i;
    }
  }
}

/// What matters: a logit is bilinear, so it is multiplied by both factors.
TEST(MuonClip, MultipliesTheLogitsOfEveryHeadByItsOwnFactor) {
  Projection query(GANYMEDE_QUERY), key(GANYMEDE_KEY);
  auto clipped_query = applied("muonclip", query), plain_query = applied("muon", query);
  auto clipped_key = applied("muonclip", key), plain_key = applied("muon", key);
  constexpr std::size_t of_head = std::size_t{rows_per_head} * columns;
  for (std::size_t head = 0; head < query_heads; head++) {
    std::size_t q = head * of_head, k = head / (query_heads / key_heads) * of_head;
    double factor = static_cast<double>(clipped_query[q]) / plain_query[q] * clipped_key[k] / plain_key[k];
    EXPECT_NEAR(factor, gamma(head), 1e-6) << head;
  }
  EXPECT_NEAR(gamma(0), 0.4, 1e-12);
}

TEST(MuonClip, IsMuonWhereNoLogitIsAboveTheThresholdAndWhereThereAreNone) {
  Projection other(0);
  EXPECT_EQ(applied("muonclip", other), applied("muon", other));
  Projection query(GANYMEDE_QUERY), key(GANYMEDE_KEY);
  auto ours = applied("muonclip", query), muon = applied("muon", query);
  auto second_group = static_cast<std::ptrdiff_t>(query_heads / 2 * rows_per_head * columns);
  EXPECT_TRUE(std::equal(ours.begin() + second_group, ours.end(), muon.begin() + second_group));
  EXPECT_NE(ours, muon);
}

TEST(MuonClip, CutsChangeNothing) {
  for (std::uint32_t role : {GANYMEDE_QUERY, GANYMEDE_KEY}) {
    Projection p(role);
    auto whole = applied("muonclip", p);
    std::vector<float> pieces(whole.size());
    for (std::size_t from = 0, piece = 1; from < whole.size(); from += piece, piece = piece % 61 + 3)
      apply(plugin("muonclip"), p, from, std::min(whole.size(), from + piece), pieces);
    EXPECT_EQ(pieces, whole);
  }
}

TEST(MuonClip, RefusesProjectionsWithoutTheirLogits) {
  Projection p(GANYMEDE_QUERY);
  GanymedeStep step{sizeof(GanymedeStep), 4, 1, lr, decay, 1.0, hyper};
  const std::uint32_t counts[] = {0};
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.master = p.master.data();
  chunk.orthogonal = p.orthogonal.data();
  chunk.new_master = p.master.data();
  chunk.reduction_counts = counts;
  chunk.role = p.role;
  chunk.rows = chunk.columns = 1;
  chunk.query_heads = query_heads;
  EXPECT_NE(plugin("muonclip").apply_chunk(&step, &chunk), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
