#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/numerics/model/reference.h"
#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

Shape shape(std::string name, std::vector<std::int64_t> documents) {
  Shape s;
  s.name = std::move(name);
  s.documents = std::move(documents);
  return s;
}

Shape with(Shape s, const std::function<void(Shape&)>& change) {
  change(s);
  return s;
}

std::vector<Shape> shapes() {
  return {
      shape("SeveralDocuments", {13, 1, 40, 7}),
      shape("OneToken", {1}),
      with(shape("WindowSmallerThanDocuments", {50, 3, 20}), [](Shape& s) { s.window = 6; }),
      with(shape("WindowOfOne", {9, 4}), [](Shape& s) { s.window = 1; }),
      with(shape("WindowLargerThanDocuments", {11, 30}), [](Shape& s) { s.window = 64; }),
      with(shape("WindowOverManyBlocks", {400}), [](Shape& s) { s.window = 40; }),
      shape("GlobalOverManyBlocks", {300, 5}),
      with(shape("OddHeads", {21, 8}),
           [](Shape& s) {
             s.heads = 3;
             s.kv_heads = 1;
             s.qk_dim = 10;
             s.v_dim = 7;
             s.hidden = 19;
             s.ffn = 5;
           }),
      with(shape("OneHeadEach", {17}), [](Shape& s) { s.kv_heads = s.heads; }),
      with(shape("NoRotation", {20}), [](Shape& s) { s.rotary_dim = 0; }),
      with(shape("FullRotation", {20}), [](Shape& s) { s.rotary_dim = s.qk_dim; }),
      with(shape("NoSinks", {20, 20}), [](Shape& s) { s.sinks = false; }),
      with(shape("Dense", {30, 4}), [](Shape& s) { s.experts = 0; }),
      with(shape("WideDense", {140}),
           [](Shape& s) {
             s.experts = 0;
             s.ffn = 600;
           }),
      with(shape("OneExpert", {30}), [](Shape& s) { s.experts = s.top_k = 1; }),
      with(shape("AllExpertsChosen", {30}), [](Shape& s) { s.top_k = s.experts; }),
      with(shape("TwoGroups", {30, 8}), [](Shape& s) { s.groups = 2; }),
      with(shape("ThreeGroupsOfTwo", {30, 8}),
           [](Shape& s) {
             s.groups = 3;
             s.top_k = 3;
           }),
      with(shape("MoreExpertsThanTokens", {3}), [](Shape& s) { s.experts = 20; }),
  };
}

/// The reference's output and gradients in one floating-point type.
struct Reference {
  at::Tensor output, grad_input;
  std::vector<at::Tensor> gradients;

  Reference(const Layer& layer, const LayerTensors& weights, const Row& row, const at::Tensor& input,
            const at::Tensor& grad_output, at::ScalarType dtype) {
    auto leaves = converted(weights, dtype);
    const auto x = input.to(dtype).clone().requires_grad_(true);
    std::vector<at::Tensor> variables = {x};
    for_each_parameter(leaves, [&](const auto&, at::Tensor& leaf) { variables.push_back(leaf.requires_grad_(true)); });
    output = reference::layer(layer.spec, 0, leaves, row, x);
    gradients = torch::autograd::grad({output}, variables, {grad_output.to(dtype)});
    grad_input = gradients.front();
    gradients.erase(gradients.begin());
  }
};

void expect_close(LayerResult result, const Reference& expected, double tolerance) {
  EXPECT_LE(relative_error(result.output, expected.output), tolerance);
  EXPECT_LE(relative_error(result.grad_input, expected.grad_input), tolerance);
  std::size_t i = 0;
  for_each_parameter(result.gradients, [&](const std::string& name, at::Tensor& gradient) {
    EXPECT_LE(relative_error(gradient, expected.gradients.at(i++)), tolerance) << name;
  });
}

class LayerGradients : public ::testing::TestWithParam<Shape> {};

TEST_P(LayerGradients, EqualThoseOfTheTextbook) {
  const Shape& s = GetParam();
  const Layer layer(s);
  const auto weights = weights_of(s);
  const auto row = row_of(s.documents, 64);
  const auto input = random_tensor({s.tokens(), s.hidden}, 100), grad = random_tensor({s.tokens(), s.hidden}, 101);
  const auto result = run_layer(layer.context, weights, row, input, grad);
  expect_close(result, Reference(layer, weights, row, input, grad, at::kDouble), 3e-6);
  expect_close(result, Reference(layer, weights, row, input, grad, at::kFloat), 1e-5);
}

TEST_P(LayerGradients, AreCloseInBf16) {
  const Shape& s = GetParam();
  const Layer layer(s);
  auto weights = weights_of(s);
  // A clear choice of experts: a flipped near-tie would be another function, not an error of rounding.
  if (s.experts > 0) weights.selection_bias = at::arange(s.experts, at::kFloat) * 2;
  const auto row = row_of(s.documents, 64);
  const auto input = random_tensor({s.tokens(), s.hidden}, 100), grad = random_tensor({s.tokens(), s.hidden}, 101);
  const auto result =
      run_layer(layer.context, converted(weights, at::kBFloat16), row, input.to(at::kBFloat16), grad.to(at::kBFloat16));
  EXPECT_EQ(result.output.scalar_type(), at::kBFloat16);
  EXPECT_EQ(result.grad_input.scalar_type(), at::kBFloat16);
  expect_close(result, Reference(layer, weights, row, input, grad, at::kDouble), 5e-2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerGradients, ::testing::ValuesIn(shapes()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Layer, GradientIsTheSlopeOfTheLoss) {
  const Shape s = with(shape("", {30, 11}), [](Shape& c) { c.window = 8; });
  const Layer layer(s);
  auto weights = weights_of(s);
  weights.selection_bias = at::arange(s.experts, at::kFloat) * 2;
  const auto row = row_of(s.documents, 64);
  const auto input = random_tensor({s.tokens(), s.hidden}, 100), grad = random_tensor({s.tokens(), s.hidden}, 101);
  auto result = run_layer(layer.context, weights, row, input, grad);
  const auto loss = [&](const LayerTensors& w) {
    return (forward_layer(layer.context, w, row, input, nullptr, nullptr).to(at::kDouble) * grad).sum().item<double>();
  };
  std::vector<at::Tensor> gradients;
  for_each_parameter(result.gradients, [&](const auto&, at::Tensor& g) { gradients.push_back(g); });
  std::size_t i = 0;
  for_each_parameter(weights, [&](const std::string& name, at::Tensor& weight) {
    const auto& gradient = gradients.at(i++);
    const double size = gradient.norm().item<double>(), step = 2e-3;
    const auto before = weight.clone(), direction = gradient / std::max(size, 1e-30);
    weight.copy_(before + direction * step);
    const double above = loss(weights);
    weight.copy_(before - direction * step);
    const double below = loss(weights);
    weight.copy_(before);
    EXPECT_NEAR((above - below) / (2 * step), size, 0.01 * size + 1e-3) << name;
  });
}

TEST(Layer, PackedRowGivesWhatEachDocumentGivesAlone) {
  for (const int window : {0, 5}) {
    const Shape s = with(shape("", {19, 33, 1}), [&](Shape& c) { c.window = window; });
    const Layer layer(s);
    const auto weights = weights_of(s);
    const auto input = random_tensor({s.tokens(), s.hidden}, 100);
    const auto packed = forward_layer(layer.context, weights, row_of(s.documents, 64), input, nullptr, nullptr);
    std::int64_t first = 0;
    for (const auto length : s.documents) {
      const auto alone = forward_layer(layer.context, weights, row_of({length}, 64),
                                       input.narrow(0, first, length).contiguous(), nullptr, nullptr);
      EXPECT_LE(relative_error(packed.narrow(0, first, length), alone), 1e-6);
      first += length;
    }
  }
}

TEST(Layer, RecomputationKeepsTheSavedRoute) {
  const Shape s = shape("", {40});
  const Layer layer(s);
  auto weights = weights_of(s);
  const auto row = row_of(s.documents, 64);
  const auto input = random_tensor({s.tokens(), s.hidden}, 100), grad = random_tensor({s.tokens(), s.hidden}, 101);
  const auto before = run_layer(layer.context, weights, row, input, grad);
  weights.selection_bias.copy_(weights.selection_bias.flip(0) * 10);
  auto gradients = filled_like(weights, 0);
  const auto recomputed = recompute_layer(layer.context, weights, row, before.saved);
  const auto grad_input = backward_layer(layer.context, weights, gradients, row, *recomputed, grad, false);
  EXPECT_TRUE(same_bits(grad_input, before.grad_input));
  EXPECT_EQ(different_bits(gradients, before.gradients), "");
}

TEST(Layer, CountsEveryChoiceOnceAndAddsToWhatIsThere) {
  const Shape s = shape("", {40, 2});
  const Layer layer(s);
  std::vector<std::int64_t> counts(6, 100);
  SavedLayer saved;
  forward_layer(layer.context, weights_of(s), row_of(s.documents, 64), random_tensor({42, s.hidden}, 100), &saved,
                counts.data());
  const auto expected = at::bincount(saved.expert_indices.flatten(), {}, 6);
  for (std::int64_t e = 0; e < 6; ++e) {
    EXPECT_EQ(counts[static_cast<std::size_t>(e)] - 100, expected[e].item<std::int64_t>());
  }
  EXPECT_EQ(expected.sum().item<std::int64_t>(), 42 * 2);
}

TEST(Layer, NanInTheInputShowsInTheOutputAndHarmsNothingElse) {
  const Shape s = shape("", {10, 10});
  const Layer layer(s);
  auto input = random_tensor({20, s.hidden}, 100);
  input[3].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto result =
      run_layer(layer.context, weights_of(s), row_of(s.documents, 64), input, random_tensor({20, s.hidden}, 101));
  EXPECT_TRUE(result.output[3].isnan().all().item<bool>());
  EXPECT_FALSE(result.output.narrow(0, 10, 10).isnan().any().item<bool>());
  EXPECT_TRUE(result.gradients.q_proj.isnan().any().item<bool>());
}

}  // namespace
}  // namespace ganymede::worker::model::testing
