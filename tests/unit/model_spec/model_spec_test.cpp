#include "common/model_spec/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace ganymede::model_spec {
namespace {

config::Model small_model() {
  config::Model model;
  model.layers = 7;
  model.hidden = 48;
  model.ffn = 80;
  model.expert_ffn = 32;
  model.experts = 4;
  model.top_k = 2;
  return model;
}

std::map<std::string, ParameterSpec> by_name(const config::Model& model) {
  std::map<std::string, ParameterSpec> map;
  for (const ParameterSpec& parameter : parameters(model)) map[parameter.name] = parameter;
  return map;
}

TEST(ModelSpec, FirstAndEverySixthLayerAreGlobal) {
  config::Model model = small_model();
  ModelSpec spec = build(model);
  ASSERT_EQ(spec.layers.size(), 7u);
  for (const LayerSpec& layer : spec.layers) {
    bool global = layer.index == 0 || layer.index == 5;
    EXPECT_EQ(layer.window, global ? 0 : model.window) << layer.index;
    EXPECT_EQ(layer.kv_heads, global ? model.kv_heads_global : model.kv_heads_sliding) << layer.index;
    EXPECT_EQ(layer.rope_theta, global ? 5e6 : 1e4) << layer.index;
    EXPECT_EQ(layer.sinks, !global) << layer.index;
    EXPECT_EQ(layer.moe, layer.index >= 1) << layer.index;
  }
  model.global_every = 1;
  for (const LayerSpec& layer : build(model).layers) EXPECT_EQ(layer.window, 0);
}

TEST(ModelSpec, RotaryPartIsEven) {
  config::Model model = small_model();
  model.qk_dim = 192;
  EXPECT_EQ(build(model).rotary_dim, 64);
  model.qk_dim = 24;
  model.rotary_fraction = 0.3;  // 7.2
  EXPECT_EQ(build(model).rotary_dim, 6);
}

TEST(ModelSpec, ParametersCarryTheirHuggingFaceNamesAndShapes) {
  auto map = by_name(small_model());
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(map.at("model.embed_tokens.weight").shape, (Shape{256, 48}));
  EXPECT_EQ(map.at("model.layers.0.mlp.gate_proj.weight").shape, (Shape{80, 48}));
  EXPECT_EQ(map.at("model.layers.0.mlp.down_proj.weight").shape, (Shape{48, 80}));
  EXPECT_EQ(map.at("model.layers.0.self_attn.k_proj.weight").shape, (Shape{24, 48}));
  EXPECT_EQ(map.at("model.layers.1.self_attn.k_proj.weight").shape, (Shape{48, 48}));
  EXPECT_EQ(map.at("model.layers.1.self_attn.q_proj.weight").shape, (Shape{96, 48}));
  EXPECT_EQ(map.at("model.layers.1.self_attn.v_proj.weight").shape, (Shape{32, 48}));
  EXPECT_EQ(map.at("model.layers.1.self_attn.o_proj.weight").shape, (Shape{48, 64}));
  EXPECT_EQ(map.at("model.layers.1.self_attn.attention_sink_bias").shape, (Shape{4}));
  EXPECT_EQ(map.count("model.layers.0.self_attn.attention_sink_bias"), 0u);
  EXPECT_EQ(map.at("model.layers.1.mlp.gate.weight").shape, (Shape{4, 48}));
  EXPECT_EQ(map.at("model.layers.1.mlp.gate.e_score_correction_bias").update, UpdateKind::selection_bias);
  EXPECT_EQ(map.at("model.layers.6.mlp.experts.3.down_proj.weight").expert, 3);
  EXPECT_EQ(map.at("model.norm.weight").bucket, BucketKind::head);
  EXPECT_EQ(map.at("lm_head.weight").bucket, BucketKind::head);
  EXPECT_EQ(map.size(), parameters(small_model()).size()) << "names are unique";
}

TEST(ModelSpec, OnlyMatricesDecay) {
  for (const ParameterSpec& parameter : parameters(small_model())) {
    EXPECT_EQ(parameter.update == UpdateKind::decayed, parameter.shape.size() == 2) << parameter.name;
  }
}

TEST(ModelSpec, ExpertsComeOneAfterAnother) {
  std::vector<std::string> order;
  for (const ParameterSpec& parameter : parameters(small_model())) {
    if (parameter.layer == 2 && parameter.expert >= 0) order.push_back(parameter.name);
  }
  ASSERT_EQ(order.size(), 12u);
  EXPECT_EQ(order[3], "model.layers.2.mlp.experts.1.gate_proj.weight");
  EXPECT_EQ(order[4], "model.layers.2.mlp.experts.1.up_proj.weight");
  EXPECT_EQ(order[5], "model.layers.2.mlp.experts.1.down_proj.weight");
}

TEST(ModelSpec, ModelWithoutExpertsIsDense) {
  config::Model model = small_model();
  model.experts = 0;
  for (const ParameterSpec& parameter : parameters(model)) {
    EXPECT_EQ(parameter.expert, -1);
    EXPECT_EQ(parameter.name.find("mlp.gate."), std::string::npos);
  }
  ParameterCount sum = count(model);
  EXPECT_EQ(sum.total, sum.active);
}

TEST(ModelSpec, CountsAndFlopsFollowTheClosedForm) {
  config::Model model;
  model.vocabulary = 100;
  model.hidden = 16;
  model.layers = 1;
  model.heads = 2;
  model.kv_heads_global = 1;
  model.qk_dim = 8;
  model.v_dim = 4;
  model.dense_layers = 0;
  model.experts = 8;
  model.top_k = 2;
  model.expert_ffn = 10;
  std::int64_t attention = 16 * 16 + 8 * 16 + 4 * 16 + 16 * 8, router = 8 * 16, expert = 3 * 10 * 16;
  std::int64_t vectors = 16 * 3 + 8;
  ParameterCount sum = count(model);
  EXPECT_EQ(sum.total, 2 * 1600 + attention + router + 8 * expert + vectors);
  EXPECT_EQ(sum.active, 2 * 1600 + attention + router + 2 * expert + vectors);
  double matrices = static_cast<double>(1600 + attention + router + 2 * expert);
  EXPECT_DOUBLE_EQ(flops_per_token(model, 9), 6 * matrices + 12 * 2 * 6 * 5.0);
  EXPECT_EQ(describe(model), "7.8k parameters, 4.9k active, 1 layers (0 dense, 1 MoE), hidden 16");
}

TEST(ModelSpec, WindowLimitsTheCountedAttention) {
  config::Model model = small_model();
  model.layers = 2;
  model.window = 4;
  double with_window = flops_per_token(model, 100);
  model.window = 100;
  double without = flops_per_token(model, 100);
  // Mean attended tokens: 50.5 of all, (1 + 2 + 3 + 97 · 4) / 100 = 3.94 in the window of layer 1.
  EXPECT_NEAR(without - with_window, 12.0 * 4 * 20 * (50.5 - 3.94), 1e-6 * without);
}

TEST(InitialValue, IsThePureFunctionThatTheBulkFormGives) {
  ParameterSpec matrix = by_name(small_model()).at("lm_head.weight");
  std::vector<float> all(matrix.elements());
  initial_values(matrix, 7, 0, all);
  for (std::int64_t first : {0, 1, 2, 3, 4, 4097}) {
    std::vector<float> part(11);
    initial_values(matrix, 7, first, part);
    for (int i = 0; i < 11; i++) EXPECT_EQ(part[i], all[first + i]) << first << " + " << i;
    EXPECT_EQ(initial_value(matrix, 7, first), all[first]);
  }
}

TEST(InitialValue, SeedAndNameChangeEveryValue) {
  auto map = by_name(small_model());
  std::vector<float> one(512), other_seed(512), other_name(512);
  initial_values(map.at("lm_head.weight"), 1, 0, one);
  initial_values(map.at("lm_head.weight"), 2, 0, other_seed);
  initial_values(map.at("model.embed_tokens.weight"), 1, 0, other_name);
  int equal = 0;
  for (int i = 0; i < 512; i++) equal += (one[i] == other_seed[i]) + (one[i] == other_name[i]);
  EXPECT_LT(equal, 4);
}

TEST(InitialValue, MatricesFollowATruncatedNormal) {
  config::Model model = small_model();
  model.hidden = 512;
  model.vocabulary = 2048;
  ParameterSpec matrix = by_name(model).at("lm_head.weight");
  std::vector<float> values(matrix.elements());
  initial_values(matrix, 3, 0, values);
  double sum = 0, squares = 0, largest = 0;
  for (float value : values) {
    double z = value / 0.02;
    sum += z;
    squares += z * z;
    largest = std::max(largest, std::abs(z));
  }
  auto n = static_cast<double>(values.size());
  // Variance of a normal truncated at ±3: 1 − 6 φ(3) / (2 Φ(3) − 1) = 0.97334; limits are five standard errors.
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 0.97334, 5 * 1.5 / std::sqrt(n));
  EXPECT_LE(largest, 3.0001);
  EXPECT_GT(largest, 2.99);
}

TEST(InitialValue, QuantilesAreThoseOfTheTruncatedNormal) {
  config::Model model = small_model();
  model.hidden = 512;
  model.vocabulary = 2048;
  ParameterSpec matrix = by_name(model).at("lm_head.weight");
  std::vector<float> values(matrix.elements());
  initial_values(matrix, 3, 0, values);
  auto n = static_cast<double>(values.size());
  for (double z : {-2.5, -2.0, -1.9, -0.5, 0.0, 1.0, 2.2}) {
    double below = 0;
    for (float value : values) below += value < z * 0.02;
    auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    double expected = (phi(z) - phi(-3)) / (phi(3) - phi(-3));
    EXPECT_NEAR(below / n, expected, 5 * std::sqrt(expected * (1 - expected) / n)) << z;
  }
}

TEST(InitialValue, OutputProjectionsAreNarrowerAndVectorsConstant) {
  config::Model model = small_model();
  auto map = by_name(model);
  double narrow = model.init_std / std::sqrt(2.0 * model.layers);
  EXPECT_DOUBLE_EQ(map.at("model.layers.3.self_attn.o_proj.weight").init_std, narrow);
  EXPECT_DOUBLE_EQ(map.at("model.layers.3.mlp.experts.0.down_proj.weight").init_std, narrow);
  EXPECT_DOUBLE_EQ(map.at("model.layers.0.mlp.down_proj.weight").init_std, narrow);
  EXPECT_DOUBLE_EQ(map.at("model.layers.3.self_attn.q_proj.weight").init_std, model.init_std);
  EXPECT_EQ(initial_value(map.at("model.layers.3.input_layernorm.weight"), 1, 5), 1.0f);
  EXPECT_EQ(initial_value(map.at("model.norm.weight"), 1, 0), 1.0f);
  EXPECT_EQ(initial_value(map.at("model.layers.1.self_attn.attention_sink_bias"), 1, 3), 0.0f);
  EXPECT_EQ(initial_value(map.at("model.layers.1.mlp.gate.e_score_correction_bias"), 1, 3), 0.0f);
}

}  // namespace
}  // namespace ganymede::model_spec
