#include "common/plan/cost/flops.h"

namespace ganymede::plan {
namespace {

ForwardFlops of_layer(const config::Config& config, const model_spec::LayerSpec& layer) {
  const config::Model& m = config.model;
  double tokens = config.data.seq_len, hidden = m.hidden, heads = m.heads, kv_heads = layer.kv_heads;
  ForwardFlops flops;
  double attention = hidden * (heads + kv_heads) * (m.qk_dim + m.v_dim);
  double feed_forward = layer.moe ? hidden * m.experts : 3 * hidden * m.ffn;
  flops.products = 2 * tokens * (attention + feed_forward);
  flops.experts = layer.moe ? 2 * tokens * m.top_k * 3 * hidden * m.expert_ffn : 0;
  flops.attention = 2 * tokens * heads * (m.qk_dim + m.v_dim) * model_spec::attended_tokens(layer, config.data.seq_len);
  return flops;
}

}  // namespace

FlopCount::FlopCount(const config::Config& config) {
  layers_.emplace_back();
  for (const model_spec::LayerSpec& layer : model_spec::build(config.model).layers) {
    layers_.push_back(of_layer(config, layer));
  }
  ForwardFlops head;
  head.products = 2.0 * config.data.seq_len * config.model.hidden * config.model.vocabulary;
  layers_.push_back(head);
}

}  // namespace ganymede::plan
