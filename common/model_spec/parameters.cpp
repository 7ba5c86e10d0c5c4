#include "common/model_spec/model_spec.h"

#include <cmath>

#include "common/base/error.h"

namespace ganymede::model_spec {
namespace {

/// Collects the parameters in storage order; `kind`, `layer` and `expert` hold for what is added next.
struct Builder {
  const config::Model& model;
  std::vector<ParameterSpec> list;
  BucketKind kind = BucketKind::embed;
  int layer = -1;
  int expert = -1;

  ParameterSpec& add(std::string name, std::vector<std::int64_t> shape, InitKind init, UpdateKind update) {
    ParameterSpec parameter;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.bucket = kind;
    parameter.layer = layer;
    parameter.expert = expert;
    parameter.init = init;
    parameter.init_std = init == InitKind::truncated_normal ? model.init_std : 0;
    parameter.update = update;
    return list.emplace_back(std::move(parameter));
  }

  ParameterSpec& matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return add(name, {rows, columns}, InitKind::truncated_normal, UpdateKind::decayed);
  }

  /// A matrix whose product is added to the residual stream: narrower, so that the sum over all layers keeps its size.
  void output_matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name, {rows, columns}, InitKind::truncated_normal, UpdateKind::decayed).init_std /=
        std::sqrt(2.0 * model.layers);
  }

  void norm(const std::string& name) { add(name, {model.hidden}, InitKind::ones, UpdateKind::undecayed); }

  void attention(const std::string& prefix, const LayerSpec& spec) {
    norm(prefix + "input_layernorm.weight");
    HeadRows heads{HeadRows::Role::query, model.heads, spec.kv_heads, model.qk_dim};
    matrix(prefix + "self_attn.q_proj.weight", model.heads * model.qk_dim, model.hidden).heads = heads;
    heads.role = HeadRows::Role::key;
    matrix(prefix + "self_attn.k_proj.weight", spec.kv_heads * model.qk_dim, model.hidden).heads = heads;
    matrix(prefix + "self_attn.v_proj.weight", spec.kv_heads * model.v_dim, model.hidden);
    output_matrix(prefix + "self_attn.o_proj.weight", model.hidden, model.heads * model.v_dim);
    if (spec.sinks) {
      add(prefix + "self_attn.attention_sink_bias", {model.heads}, InitKind::zeros, UpdateKind::undecayed);
    }
    norm(prefix + "post_attention_layernorm.weight");
  }

  void feed_forward(const std::string& prefix, int size) {
    matrix(prefix + "gate_proj.weight", size, model.hidden);
    matrix(prefix + "up_proj.weight", size, model.hidden);
    output_matrix(prefix + "down_proj.weight", model.hidden, size);
  }

  void one_layer(const LayerSpec& spec) {
    std::string prefix = fmt::format("model.layers.{}.", spec.index);
    layer = spec.index;
    kind = BucketKind::dense;
    attention(prefix, spec);
    if (!spec.moe) return feed_forward(prefix + "mlp.", model.ffn);
    matrix(prefix + "mlp.gate.weight", model.experts, model.hidden);
    add(prefix + "mlp.gate.e_score_correction_bias", {model.experts}, InitKind::zeros, UpdateKind::selection_bias);
    kind = BucketKind::experts;
    for (expert = 0; expert < model.experts; expert++) {
      feed_forward(fmt::format("{}mlp.experts.{}.", prefix, expert), model.expert_ffn);
    }
    expert = -1;
  }
};

}  // namespace

std::vector<ParameterSpec> parameters(const config::Model& model) {
  Builder builder{model, {}};
  builder.matrix("model.embed_tokens.weight", model.vocabulary, model.hidden);
  for (const LayerSpec& layer : build(model).layers) builder.one_layer(layer);
  builder.layer = -1;
  builder.kind = BucketKind::head;
  builder.norm("model.norm.weight");
  builder.matrix("lm_head.weight", model.vocabulary, model.hidden);
  return std::move(builder.list);
}

}  // namespace ganymede::model_spec
