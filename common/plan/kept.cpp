#include "common/plan/kept.h"

#include <utility>

#include "common/model_spec/model_spec.h"
#include "common/plan/exchange_form.h"

namespace ganymede::plan {
namespace {

/// Lays parts out one after another.
class Parts {
 public:
  explicit Parts(std::int64_t element) : element_(element) {}
  void add(Kept what, std::vector<std::int64_t> shape, bool fp32 = false) {
    std::int64_t bytes = fp32 ? 4 : element_;
    for (std::int64_t extent : shape) bytes *= extent;
    kept.parts.push_back({what, std::move(shape), fp32, kept.bytes});
    kept.bytes += (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  }
  KeptActivations kept;

 private:
  std::int64_t element_;
};

void add_feed_forward(const config::Config& config, bool moe, Parts& parts) {
  const config::Model& model = config.model;
  const std::int64_t tokens = config.data.seq_len;
  if (!moe) {
    parts.add(Kept::gate, {tokens, model.ffn});
    parts.add(Kept::up, {tokens, model.ffn});
    return;
  }
  parts.add(Kept::scores, {tokens, model.experts}, true);
  const ExchangeForm form = exchange_form(config);
  if (form.even) {
    parts.add(Kept::received_rows, {form.received(), form.hidden});
    parts.add(Kept::received_choices, {form.received(), 2 * form.top_k}, true);
  } else if (form.travels()) {
    parts.add(Kept::choices, {tokens, 2 * form.top_k}, true);
  }
  // Each token has as many choices here, from all places together, as a place that is alone has of its own.
  if (form.even || !form.travels()) parts.add(Kept::gate_up, {tokens * model.top_k, 2 * model.expert_ffn});
}

}  // namespace

KeptActivations kept_activations(const config::Config& config, int layer) {
  if (config.recompute == config::Recompute::full) return {};
  const model_spec::ModelSpec spec = model_spec::build(config.model);
  const model_spec::LayerSpec& of_layer = spec.layers.at(static_cast<std::size_t>(layer));
  const std::int64_t tokens = config.data.seq_len, hidden = spec.hidden, kv = of_layer.kv_heads;
  const std::int64_t queries = tokens * (spec.heads / kv);
  Parts parts(config.compute.dtype == config::Dtype::bf16 ? 2 : 4);
  parts.add(Kept::attention, {tokens, std::int64_t{spec.heads} * spec.v_dim});
  parts.add(Kept::log_sum, {kv, queries}, true);
  if (config.recompute == config::Recompute::selective) return std::move(parts.kept);
  for (Kept what : {Kept::normed, Kept::middle}) parts.add(what, {tokens, hidden});
  if (!of_layer.moe || !keeps_received(config)) parts.add(Kept::feed_input, {tokens, hidden});
  parts.add(Kept::query, {kv, queries, spec.qk_dim}, true);
  parts.add(Kept::key, {kv, tokens, spec.qk_dim}, true);
  parts.add(Kept::value, {kv, tokens, spec.v_dim}, true);
  add_feed_forward(config, of_layer.moe, parts);
  return std::move(parts.kept);
}

}  // namespace ganymede::plan
