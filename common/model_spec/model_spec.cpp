#include "common/model_spec/model_spec.h"

#include <cmath>

#include "common/base/error.h"

namespace ganymede::model_spec {
namespace {

LayerSpec layer_of(const config::Model& model, int index) {
  bool global = index == 0 || (index + 1) % model.global_every == 0;
  LayerSpec layer;
  layer.index = index;
  layer.moe = model.experts > 0 && index >= model.dense_layers;
  layer.window = global ? 0 : model.window;
  layer.kv_heads = global ? model.kv_heads_global : model.kv_heads_sliding;
  layer.rope_theta = global ? model.rope_theta_global : model.rope_theta_sliding;
  layer.sinks = model.sinks && !global;
  return layer;
}

int rotary_dim(const config::Model& model) {
  int dim = static_cast<int>(model.qk_dim * model.rotary_fraction);
  return dim - dim % 2;
}

std::string in_millions(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", static_cast<double>(count) * 1e-9);
  if (count >= 1'000'000) return fmt::format("{:.1f}M", static_cast<double>(count) * 1e-6);
  return fmt::format("{:.1f}k", static_cast<double>(count) * 1e-3);
}

}  // namespace

bool ParameterSpec::hidden_matrix() const {
  bool inside = bucket == BucketKind::dense || bucket == BucketKind::experts;
  return inside && shape.size() == 2 && !name.ends_with(".mlp.gate.weight");
}

std::int64_t ParameterSpec::elements() const {
  std::int64_t product = 1;
  for (std::int64_t size : shape) product *= size;
  return product;
}

ModelSpec build(const config::Model& model) {
  ModelSpec spec;
  spec.vocabulary = model.vocabulary;
  spec.hidden = model.hidden;
  spec.heads = model.heads;
  spec.qk_dim = model.qk_dim;
  spec.v_dim = model.v_dim;
  spec.rotary_dim = rotary_dim(model);
  spec.value_scale = model.value_scale;
  spec.norm_eps = model.norm_eps;
  spec.ffn = model.ffn;
  spec.experts = model.experts;
  spec.top_k = model.top_k;
  spec.router_groups = model.router_groups;
  spec.expert_ffn = model.expert_ffn;
  spec.router_scale = model.router_scale;
  spec.bias_update_rate = model.bias_update_rate;
  for (int i = 0; i < model.layers; i++) spec.layers.push_back(layer_of(model, i));
  return spec;
}

double attended_tokens(const LayerSpec& layer, int seq_len) {
  double length = seq_len;
  double window = layer.window == 0 ? length : std::min<double>(layer.window, length);
  return (window * (window + 1) / 2 + (length - window) * window) / length;
}

ParameterCount count(const config::Model& model) {
  ParameterCount sum;
  std::int64_t of_experts = 0;
  for (const ParameterSpec& parameter : parameters(model)) {
    sum.total += parameter.elements();
    if (parameter.expert >= 0) of_experts += parameter.elements();
  }
  sum.active = sum.total - of_experts;
  if (of_experts > 0) sum.active += of_experts / model.experts * model.top_k;
  return sum;
}

double flops_per_token(const config::Model& model, int seq_len) {
  double matrices = 0;
  for (const ParameterSpec& parameter : parameters(model)) {
    if (parameter.shape.size() < 2 || parameter.bucket == BucketKind::embed) continue;
    double share = parameter.expert >= 0 ? static_cast<double>(model.top_k) / model.experts : 1;
    matrices += share * static_cast<double>(parameter.elements());
  }
  double attention = 0;
  for (const LayerSpec& layer : build(model).layers) {
    attention += model.heads * (model.qk_dim + model.v_dim) / 2.0 * attended_tokens(layer, seq_len);
  }
  return 6 * matrices + 12 * attention;
}

std::string describe(const config::Model& model) {
  ParameterCount sum = count(model);
  int moe = 0;
  for (const LayerSpec& layer : build(model).layers) moe += layer.moe ? 1 : 0;
  return fmt::format("{} parameters, {} active, {} layers ({} dense, {} MoE), hidden {}", in_millions(sum.total),
                     in_millions(sum.active), model.layers, model.layers - moe, moe, model.hidden);
}

}  // namespace ganymede::model_spec
