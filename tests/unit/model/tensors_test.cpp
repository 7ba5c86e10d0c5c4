#include "services/worker/model/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "common/base/error.h"
#include "services/worker/model/rotary.h"

namespace ganymede::worker::model {
namespace {

config::Model small_model() {
  config::Model model;
  model.layers = 2;
  model.experts = 4;
  return model;
}

/// All parameters one after another in one buffer, as a segment holds them.
struct Buffer {
  explicit Buffer(const config::Model& model) {
    std::int64_t size = 0;
    const auto list = model_spec::parameters(model);
    for (const auto& parameter : list) size += parameter.elements();
    data = at::arange(size, at::kFloat);
    std::int64_t offset = 0;
    for (const auto& parameter : list) {
      views[parameter.name] = data.narrow(0, offset, parameter.elements()).view(parameter.shape);
      offset += parameter.elements();
    }
  }
  at::Tensor operator()(const std::string& name) {
    used.push_back(name);
    const auto found = views.find(name);
    return found == views.end() ? at::Tensor() : found->second;
  }
  at::Tensor data;
  std::map<std::string, at::Tensor> views;
  std::vector<std::string> used;
};

TEST(BindLayer, FindsEveryParameterOfALayerByItsName) {
  const auto model = small_model();
  const auto spec = model_spec::build(model);
  Buffer buffer(model);
  for (int layer = 0; layer < 2; ++layer) bind_layer(spec, layer, 0, 4, std::ref(buffer));
  std::size_t in_layers = 0;
  for (const auto& parameter : model_spec::parameters(model)) in_layers += parameter.layer >= 0 ? 1 : 0;
  EXPECT_EQ(buffer.used.size(), in_layers);
  for (const auto& name : buffer.used) EXPECT_TRUE(buffer.views.contains(name)) << name;
}

TEST(BindLayer, GateAndUpOfAnExpertAreOneMatrixOverTheSameMemory) {
  const auto model = small_model();
  Buffer buffer(model);
  const auto bound = bind_layer(model_spec::build(model), 1, 2, 2, std::ref(buffer));
  ASSERT_EQ(bound.expert_gate_up.size(), 2u);
  const auto gate = buffer("model.layers.1.mlp.experts.3.gate_proj.weight");
  const auto up = buffer("model.layers.1.mlp.experts.3.up_proj.weight");
  EXPECT_TRUE(bound.expert_gate_up[1].equal(at::cat({gate, up})));
  EXPECT_EQ(bound.expert_gate_up[1].data_ptr(), gate.data_ptr());
  EXPECT_FALSE(bound.gate_proj.defined());
}

TEST(Rotary, PositionsStartAgainWithEachDocument) {
  Row row;
  row.document_begin = {0, 3, 4, 6};
  EXPECT_EQ(positions(row), (std::vector<std::int64_t>{0, 1, 2, 0, 0, 1}));
}

TEST(Rotary, OneTableForEachThetaWithTheAnglesOfItsPositions) {
  const auto spec = model_spec::build(small_model());
  const RotaryTables tables(spec, 50);
  const auto& table = tables.table(1);  // sliding: theta 1e4
  EXPECT_EQ(table.cos.sizes(), (at::IntArrayRef{50, spec.rotary_dim / 2}));
  const double angle = 49 * std::pow(1e4, -2.0 / spec.rotary_dim);
  EXPECT_NEAR(table.cos[49][1].item<double>(), std::cos(angle), 1e-6);
  EXPECT_NEAR(table.sin[49][1].item<double>(), std::sin(angle), 1e-6);
  EXPECT_THROW(tables.table(static_cast<int>(spec.layers.size())), std::out_of_range);
}

TEST(Rotary, OneTableALayerHasTheSameValuesInMoreMemory) {
  auto model = small_model();
  model.layers = 5;
  const auto spec = model_spec::build(model);
  const RotaryTables shared(spec, 50), own(spec, 50, true);
  EXPECT_EQ(&shared.table(1), &shared.table(2));
  EXPECT_NE(&own.table(1), &own.table(2));
  for (int layer = 0; layer < 5; ++layer) EXPECT_TRUE(at::equal(shared.table(layer).cos, own.table(layer).cos));
  EXPECT_EQ(shared.bytes(), 2 * 2 * 50 * (spec.rotary_dim / 2) * 4) << "two thetas, cos and sin";
  EXPECT_EQ(own.bytes(), 5 * 2 * 50 * (spec.rotary_dim / 2) * 4);
}

TEST(Rotary, DocumentLongerThanTheTablesIsRefused) {
  const auto spec = model_spec::build(small_model());
  const RotaryTables tables(spec, 4);
  EXPECT_THROW(split_heads_rotated(at::zeros({5, 24}), {1, 1, 24}, tables.table(0), {0, 1, 2, 3, 4}), Error);
}

}  // namespace
}  // namespace ganymede::worker::model
