#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "common/base/error.h"
#include "tests/numerics/model/reference.h"
#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

constexpr std::int64_t hidden_size = 20, vocabulary = 600, tokens = 90;

struct Head {
  model_spec::ModelSpec spec;
  HeadTensors weights, gradients;
  Row row = row_of({50, 40}, vocabulary);
  at::Tensor hidden = random_tensor({tokens, hidden_size}, 5);

  explicit Head(at::ScalarType dtype = at::kFloat) {
    spec.norm_eps = 1e-5;
    weights = {random_tensor({hidden_size}, 6, 0.3).add_(1).to(at::kBFloat16).to(dtype),
               random_tensor({vocabulary, hidden_size}, 7, 0.4).to(dtype)};
    hidden = hidden.to(dtype);
    clear(3);
  }
  void clear(double value) {
    gradients = {at::full({hidden_size}, value, at::kFloat), at::full({vocabulary, hidden_size}, value, at::kFloat)};
  }
  HeadResult run(std::int64_t chunk, bool accumulate = false, double scale = 0.25) {
    return head_forward_backward(spec, weights, gradients, row, hidden, scale, chunk, accumulate);
  }
};

void expect_head_close(Head& head, const HeadResult& result, double tolerance) {
  const auto x = head.hidden.to(at::kDouble).requires_grad_(true);
  const HeadTensors leaves = {head.weights.norm.to(at::kDouble).requires_grad_(true),
                              head.weights.head.to(at::kDouble).requires_grad_(true)};
  const auto loss = reference::loss(head.spec, leaves, head.row, x);
  const auto grads = torch::autograd::grad({loss * 0.25}, {x, leaves.norm, leaves.head});
  EXPECT_NEAR(result.loss_sum, loss.item<double>(), tolerance * loss.item<double>());
  EXPECT_LE(relative_error(result.grad_hidden, grads[0]), tolerance);
  EXPECT_LE(relative_error(head.gradients.norm, grads[1]), tolerance);
  EXPECT_LE(relative_error(head.gradients.head, grads[2]), tolerance);
}

TEST(Head, LossAndGradientsEqualTheTextbookForAnyChunk) {
  for (const std::int64_t chunk : {1, 7, 64, 1000}) {
    Head head;
    expect_head_close(head, head.run(chunk), 2e-6);
  }
}

TEST(Head, IsCloseInBf16) {
  Head head(at::kBFloat16);
  expect_head_close(head, head.run(32), 2e-2);
}

TEST(Head, LossWithoutGradientsHasTheSameBits) {
  Head head;
  const auto loss = head.run(16).loss_sum;
  EXPECT_EQ(head_loss(head.spec, head.weights, head.row, head.hidden, 16), loss);
}

TEST(Head, AccumulationAddsTheRowsWholeGradient) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t chunk : {20, 1000}) {
      Head head(dtype);
      head.run(chunk);
      const auto alone = head.gradients;
      head.clear(0.37);
      const auto expected = head.gradients.head + alone.head, expected_norm = head.gradients.norm + alone.norm;
      head.run(chunk, true);
      EXPECT_TRUE(same_bits(head.gradients.head, expected));
      EXPECT_TRUE(same_bits(head.gradients.norm, expected_norm));
    }
  }
}

TEST(Head, RowWithoutLossTokensHasNoLossAndNoGradient) {
  Head head;
  head.row.targets.fill_(-1);
  const auto result = head.run(16);
  EXPECT_EQ(result.loss_sum, 0);
  EXPECT_TRUE(same_bits(result.grad_hidden, at::zeros({tokens, hidden_size})));
  EXPECT_TRUE(same_bits(head.gradients.head, at::zeros({vocabulary, hidden_size})));
  EXPECT_TRUE(same_bits(head.gradients.norm, at::zeros({hidden_size})));
}

TEST(Head, LargeLogitsNeitherOverflowNorLoseTheLoss) {
  Head head;
  head.weights.head.mul_(400);
  const auto result = head.run(32);
  EXPECT_TRUE(std::isfinite(result.loss_sum));
  EXPECT_TRUE(result.grad_hidden.isfinite().all().item<bool>());
}

TEST(Head, TargetOutsideOfTheVocabularyIsRefused) {
  Head head;
  head.row.targets[4] = vocabulary;
  EXPECT_THROW(head.run(16), Error);
}

TEST(Head, LogitsAreThoseOfTheLoss) {
  Head head;
  const auto logits = head_logits(head.spec, head.weights, head.hidden);
  const auto expected = reference::rms_norm(head.hidden, head.weights.norm, 1e-5).matmul(head.weights.head.t());
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_LE(relative_error(logits, expected), 1e-6);
}

TEST(Embedding, TakesTheRowsOfTheTokens) {
  const auto weight = random_tensor({50, 9}, 1);
  const auto row = row_of({30, 3}, 50);
  EXPECT_TRUE(same_bits(embed(weight, row), weight.index_select(0, row.tokens)));
  EXPECT_EQ(embed(weight.to(at::kBFloat16), row).scalar_type(), at::kBFloat16);
}

TEST(Embedding, GradientSumsTheOccurrencesOfATokenInOrder) {
  const auto row = row_of({200}, 20);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto grad = random_tensor({200, 9}, 2).to(dtype);
    auto expected = at::zeros({20, 9});
    for (std::int64_t t = 0; t < 200; ++t) expected[row.tokens[t].item<std::int64_t>()].add_(grad[t].to(at::kFloat));
    auto gradient = at::full({20, 9}, 5.0);
    embed_backward(row, grad, gradient, false);
    EXPECT_TRUE(same_bits(gradient, expected));
    auto added = at::full({20, 9}, 0.3);
    embed_backward(row, grad, added, true);
    EXPECT_TRUE(same_bits(added, at::full({20, 9}, 0.3) + expected));
  }
}

TEST(Embedding, TokenOutsideOfTheVocabularyIsRefused) {
  auto row = row_of({5}, 50);
  row.tokens[2] = -3;
  EXPECT_THROW(embed(random_tensor({50, 4}, 1), row), Error);
  EXPECT_THROW(embed_backward(row, random_tensor({5, 4}, 1), at::zeros({50, 4}), false), Error);
}

}  // namespace
}  // namespace ganymede::worker::model::testing
