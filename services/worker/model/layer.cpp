#include "services/worker/model/layer.h"

#include <ATen/core/grad_mode.h>

#include "common/base/error.h"
#include "services/worker/model/layer_steps.h"

namespace ganymede::worker::model {

namespace {

FeedForwardTensors feed_forward_tensors(const LayerTensors& tensors) {
  return {tensors.gate_proj, tensors.up_proj, tensors.down_proj};
}

/// Routes, and makes the experts' input: all experts are here.
void run_router_here(const LayerContext& context, const LayerTensors& weights, const at::Tensor& indices,
                     std::int64_t* counts, const at::Tensor& scores, bool again, RecomputedLayer& layer) {
  const auto routing = run_router(context, weights, indices, counts, scores, again, layer);
  layer.expert_input = {layer.feed_input, layer.indices, routing,
                        order_by_expert(layer.indices, context.first_expert, context.local_experts)};
}

/// Gradient by feed_input.
at::Tensor moe_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                        const RecomputedLayer& layer, const at::Tensor& grad_output, bool accumulate) {
  auto own = experts_backward(expert_tensors(weights), expert_tensors(gradients), layer.expert_input, grad_output,
                              accumulate, layer.gate_up);
  router_backward(context, weights, gradients, layer, own.weights, own.rows, accumulate);
  return own.rows;
}

}  // namespace

at::Tensor forward_layer(const LayerContext& context, const LayerTensors& weights, const Row& row,
                         const at::Tensor& input, SavedLayer* saved, std::int64_t* expert_counts) {
  const c10::NoGradGuard no_grad;
  const KeptLayer kept = saved != nullptr ? saved->kept : KeptLayer();
  RecomputedLayer layer;
  run_attention(context, weights, row, input, kept, false, layer);
  layer.attention = {};
  if (!is_moe(context)) {
    return feed_forward(feed_forward_tensors(weights), layer.feed_input, {kept.gate, kept.up}).add_(layer.middle);
  }
  run_router_here(context, weights, {}, expert_counts, kept.scores, false, layer);
  if (saved != nullptr) saved->expert_indices = layer.indices;
  return experts(expert_tensors(weights), layer.expert_input, layer.middle, kept.gate_up);
}

std::shared_ptr<RecomputedLayer> recompute_layer(const LayerContext& context, const LayerTensors& weights,
                                                 const Row& row, const SavedLayer& saved) {
  const c10::NoGradGuard no_grad;
  auto layer = std::make_shared<RecomputedLayer>();
  restore_attention(context, weights, row, saved, *layer);
  layer->dense = {saved.kept.gate, saved.kept.up};
  layer->gate_up = saved.kept.gate_up;
  if (!is_moe(context)) return layer;
  GANYMEDE_CHECK(saved.expert_indices.defined(), "layer {} is recomputed without its expert indices", context.layer);
  run_router_here(context, weights, saved.expert_indices, nullptr, saved.kept.scores, true, *layer);
  return layer;
}

at::Tensor backward_layer(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                          const Row& row, RecomputedLayer& layer, const at::Tensor& grad_output, bool accumulate) {
  const c10::NoGradGuard no_grad;
  const auto grad_feed = is_moe(context)
                             ? moe_backward(context, weights, gradients, layer, grad_output, accumulate)
                             : feed_forward_backward(feed_forward_tensors(weights), feed_forward_tensors(gradients),
                                                     layer.feed_input, grad_output, accumulate, layer.dense);
  return attention_backward(context, weights, gradients, row, layer, grad_output, grad_feed, accumulate);
}

}  // namespace ganymede::worker::model
