#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

/// Large enough that every step is cut into several pieces.
Shape large(bool moe, int window) {
  Shape s;
  s.documents = {201, 77, 30};
  s.hidden = 136;
  s.heads = 6;
  s.kv_heads = 3;
  s.qk_dim = 24;
  s.v_dim = 20;
  s.rotary_dim = 8;
  s.window = window;
  s.experts = moe ? 11 : 0;
  s.top_k = 3;
  s.ffn = moe ? 67 : 700;
  return s;
}

struct Run {
  LayerResult layer;
  HeadResult head;
  HeadTensors head_gradients;
  at::Tensor embedding;
};

Run run_all(const Shape& s, at::ScalarType dtype) {
  constexpr std::int64_t vocabulary = 600;
  const Layer layer(s);
  const auto row = row_of(s.documents, vocabulary);
  const auto input = random_tensor({s.tokens(), s.hidden}, 100).to(dtype);
  const auto grad = random_tensor({s.tokens(), s.hidden}, 101).to(dtype);
  Run run{run_layer(layer.context, converted(weights_of(s), dtype), row, input, grad), {}, {}, {}};
  const HeadTensors head = {at::ones({s.hidden}, dtype), random_tensor({vocabulary, s.hidden}, 102, 0.1).to(dtype)};
  run.head_gradients = {at::zeros({s.hidden}), at::zeros({vocabulary, s.hidden})};
  run.head = head_forward_backward(layer.spec, head, run.head_gradients, row, run.layer.output, 1e-3, 200, false);
  run.embedding = at::empty({vocabulary, s.hidden});
  embed_backward(row, grad, run.embedding, false);
  return run;
}

void expect_same(const Run& a, const Run& b) {
  EXPECT_TRUE(same_bits(a.layer.output, b.layer.output));
  EXPECT_TRUE(same_bits(a.layer.grad_input, b.layer.grad_input));
  EXPECT_EQ(different_bits(a.layer.gradients, b.layer.gradients), "");
  EXPECT_EQ(a.layer.expert_counts, b.layer.expert_counts);
  EXPECT_EQ(a.head.loss_sum, b.head.loss_sum);
  EXPECT_TRUE(same_bits(a.head.grad_hidden, b.head.grad_hidden));
  EXPECT_TRUE(same_bits(a.head_gradients.head, b.head_gradients.head));
  EXPECT_TRUE(same_bits(a.head_gradients.norm, b.head_gradients.norm));
  EXPECT_TRUE(same_bits(a.embedding, b.embedding));
}

class Determinism : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  ~Determinism() override { at::set_num_threads(threads_); }
  int threads_ = at::get_num_threads();
};

TEST_P(Determinism, BitsDoNotDependOnTheNumberOfThreads) {
  for (const auto& s : {large(true, 0), large(true, 33), large(false, 0)}) {
    at::set_num_threads(1);
    const auto one = run_all(s, GetParam());
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      expect_same(run_all(s, GetParam()), one);
    }
  }
}

TEST_P(Determinism, BitsDoNotDependOnWhatWasComputedBefore) {
  const auto first = run_all(large(true, 20), GetParam());
  run_all(large(false, 0), GetParam());
  expect_same(run_all(large(true, 20), GetParam()), first);
}

TEST_P(Determinism, AccumulatedRowsAreTheSumOfTheirWholeGradients) {
  for (const auto& s : {large(true, 0), large(false, 33)}) {
    const Layer layer(s);
    const auto weights = converted(weights_of(s), GetParam());
    const auto row = row_of(s.documents, 64);
    const auto grad = random_tensor({s.tokens(), s.hidden}, 101).to(GetParam());
    const auto input = [&](std::uint64_t seed) { return random_tensor({s.tokens(), s.hidden}, seed).to(GetParam()); };
    auto sum = run_layer(layer.context, weights, row, input(1), grad).gradients;
    auto second = run_layer(layer.context, weights, row, input(2), grad).gradients;
    auto expected = converted(sum, at::kFloat);
    std::vector<at::Tensor> others;
    for_each_parameter(second, [&](const auto&, at::Tensor& tensor) { others.push_back(tensor); });
    std::size_t i = 0;
    for_each_parameter(expected, [&](const auto&, at::Tensor& tensor) { tensor.add_(others.at(i++)); });
    add_layer(layer.context, weights, row, input(2), grad, sum);
    EXPECT_EQ(different_bits(sum, expected), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Determinism, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& tested) { return tested.param == at::kFloat ? "Fp32" : "Bf16"; });

}  // namespace
}  // namespace ganymede::worker::model::testing
