#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "services/worker/model/attention.h"

/// The largest logits that attention finds on its way, against all logits of a row at once.
namespace ganymede::worker::model {
namespace {

constexpr std::int64_t qk_dim = 24, v_dim = 16;

struct Sample {
  AttentionShape shape;
  std::vector<std::int64_t> document_begin;
  AttentionInput input;
};

Sample sample(std::int64_t heads, std::int64_t kv_heads, std::int64_t window, std::vector<std::int64_t> documents) {
  at::manual_seed(3);
  const std::int64_t tokens = documents.back();
  Sample made{{heads, kv_heads, qk_dim, v_dim, window, 0.2f}, std::move(documents), {}};
  made.input.query = at::randn({kv_heads, tokens * made.shape.group(), qk_dim});
  made.input.key = at::randn({kv_heads, tokens, qk_dim});
  made.input.value = at::randn({kv_heads, tokens, v_dim});
  return made;
}

std::vector<float> found(const Sample& s, std::vector<float> largest) {
  AttentionOutput out;
  out.largest_logits = largest.data();
  attention(s.shape, s.document_begin, s.input, at::kFloat, out);
  return largest;
}

std::vector<float> found(const Sample& s) {
  return found(s, std::vector<float>(static_cast<std::size_t>(s.shape.heads), -std::numeric_limits<float>::infinity()));
}

/// By all pairs of a query and a key that it sees.
std::vector<double> expected(const Sample& s) {
  std::vector<double> largest(static_cast<std::size_t>(s.shape.heads), -std::numeric_limits<double>::infinity());
  const std::int64_t group = s.shape.group();
  for (std::int64_t head = 0; head < s.shape.heads; ++head) {
    const auto key = s.input.key[head / group].to(at::kDouble);
    const auto query = s.input.query[head / group].view({-1, group, qk_dim}).select(1, head % group).to(at::kDouble);
    const auto logits = at::matmul(query, key.t()) * static_cast<double>(s.shape.scale);
    for (std::size_t d = 0; d + 1 < s.document_begin.size(); ++d) {
      for (std::int64_t t = s.document_begin[d]; t < s.document_begin[d + 1]; ++t) {
        const std::int64_t window = s.shape.window > 0 ? t - s.shape.window + 1 : 0;
        for (std::int64_t k = std::max(window, s.document_begin[d]); k <= t; ++k)
          largest[static_cast<std::size_t>(head)] =
              std::max(largest[static_cast<std::size_t>(head)], logits[t][k].item<double>());
      }
    }
  }
  return largest;
}

TEST(LargestLogits, AreThoseOfAllPairsThatAttentionSees) {
  for (const std::int64_t window : {0, 1, 9}) {
    for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {6, 2}, {3, 1}}) {
      const auto s = sample(heads, kv_heads, window, {0, 5, 90, 91, 200});
      const auto ours = found(s);
      const auto all = expected(s);
      for (std::size_t head = 0; head < ours.size(); ++head)
        EXPECT_NEAR(ours[head], all[head], 1e-5) << "head " << head << " of " << heads << ", window " << window;
    }
  }
}

TEST(LargestLogits, AreRaisedAndLeaveTheResultAsItIs) {
  const auto s = sample(4, 2, 0, {0, 60});
  auto begin = found(s);
  begin[1] += 1;
  const auto raised = begin;
  begin[2] -= 1;
  EXPECT_EQ(found(s, begin), raised);
  AttentionOutput with;
  with.largest_logits = begin.data();
  const auto a = attention(s.shape, s.document_begin, s.input, at::kFloat, with);
  const auto b = attention(s.shape, s.document_begin, s.input, at::kFloat);
  EXPECT_TRUE(at::equal(a.output, b.output) && at::equal(a.log_sum, b.log_sum));
}

TEST(LargestLogits, ASinkIsNoneOfThem) {
  auto s = sample(4, 2, 0, {0, 60});
  const auto without = found(s);
  s.input.sinks = at::full({4}, 50.0f);
  EXPECT_EQ(found(s), without);
}

TEST(LargestLogits, OneThatIsNotFiniteIsSeenInItsHeadAlone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto s = sample(4, 2, 0, {0, 300});
    s.input.query[0][7 * 2 + 1][3] = bad;  // token 7, head 1
    s.input.key[0].select(1, 3).fill_(1);
    const auto ours = found(s);
    EXPECT_TRUE(std::isnan(ours[1]));
    for (const std::size_t head : {0, 2, 3}) EXPECT_TRUE(std::isfinite(ours[head])) << head;
  }
}

}  // namespace
}  // namespace ganymede::worker::model
