#include "services/worker/model/layer.h"

#include <ATen/core/grad_mode.h>

#include "common/base/error.h"
#include "services/worker/model/expert_dispatch.h"
#include "services/worker/model/feed_forward.h"
#include "services/worker/model/layer_attention.h"
#include "services/worker/model/matmul.h"
#include "services/worker/model/rms_norm.h"
#include "services/worker/model/router.h"

namespace ganymede::worker::model {

/// Activations of a layer. Hidden activations of feed-forward networks and probabilities of attention are not here:
/// backward computes them block by block, which costs the same and keeps memory small.
struct RecomputedLayer {
  at::Tensor input;   // [T, H]
  at::Tensor normed;  // input after its norm
  LayerAttention attention;
  at::Tensor middle;           // input + attention
  at::Tensor feed_input;       // middle after its norm
  at::Tensor router_input;     // feed_input in fp32
  at::Tensor scores, indices;  // of the router
  ExpertInput expert_input;
  Dispatch dispatch;
  FeedForwardKept dense;  // hidden activations, where they were kept
  at::Tensor gate_up;
};

namespace {

bool is_moe(const LayerContext& context) {
  return context.spec->layers.at(static_cast<std::size_t>(context.layer)).moe;
}

FeedForwardTensors feed_forward_tensors(const LayerTensors& tensors) {
  return {tensors.gate_proj, tensors.up_proj, tensors.down_proj};
}

ExpertTensors expert_tensors(const LayerTensors& tensors) { return {tensors.expert_gate_up, tensors.expert_down}; }

/// Up to the feed-forward network's input. With `again`, what `kept` has of the attention's result is not computed.
void run_attention(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
                   const KeptLayer& kept, bool again, RecomputedLayer& layer) {
  const double eps = context.spec->norm_eps;
  layer.input = input;
  layer.normed = rms_norm(input, weights.input_norm, eps, kept.normed);
  layer.attention = layer_attention(context, weights, row, layer.normed, kept, again);
  layer.middle = project(layer.attention.result.output, weights.o_proj, kept.middle).add_(input);
  layer.feed_input = rms_norm(layer.middle, weights.post_norm, eps, kept.feed_input);
}

/// The same where everything was kept.
void take_attention(const LayerContext& context, const LayerTensors& weights, const SavedLayer& saved,
                    RecomputedLayer& layer) {
  layer.input = saved.input;
  layer.normed = saved.kept.normed;
  layer.attention = kept_attention(context, weights, saved.kept);
  layer.middle = saved.kept.middle;
  layer.feed_input = saved.kept.feed_input;
}

/// Routes and dispatches. Without `indices` the experts are selected, and counted if `counts` is given. `scores`: where
/// they are kept; they are there already with `again`.
void run_router(const LayerContext& context, const LayerTensors& weights, const at::Tensor& indices,
                std::int64_t* counts, const at::Tensor& scores, bool again, RecomputedLayer& layer) {
  layer.router_input = layer.feed_input.to(at::kFloat);
  layer.scores =
      again && scores.defined() ? scores : router_scores(layer.router_input, weights.router.to(at::kFloat), scores);
  layer.indices = indices.defined() ? indices
                                    : select_experts(layer.scores, weights.selection_bias, context.spec->top_k,
                                                     context.spec->router_groups, counts);
  const auto routing = routing_weights(layer.scores, layer.indices, context.spec->router_scale);
  layer.expert_input = dispatch(*context.exchange, context.first_expert, context.local_experts, layer.feed_input,
                                layer.indices, routing, layer.dispatch);
}

at::Tensor run_experts(const LayerContext& context, const LayerTensors& weights, const RecomputedLayer& layer) {
  const bool alone = context.exchange->size() == 1;
  const auto sums =
      experts(expert_tensors(weights), layer.expert_input, alone ? layer.middle : at::Tensor(), layer.gate_up);
  if (alone) return sums;
  return combine(*context.exchange, layer.dispatch, layer.middle.size(0), sums, layer.middle);
}

/// Gradient by feed_input.
at::Tensor moe_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                        const RecomputedLayer& layer, const at::Tensor& grad_output, bool accumulate) {
  auto& exchange = *context.exchange;
  const std::int64_t tokens = grad_output.size(0);
  const auto own = experts_backward(expert_tensors(weights), expert_tensors(gradients), layer.expert_input,
                                    send_again(exchange, layer.dispatch, grad_output), accumulate, layer.gate_up);
  auto grad_input = combine(exchange, layer.dispatch, tokens, own.rows, {});
  const auto grad_weights = combine(exchange, layer.dispatch, tokens, own.weights, {});
  const auto grad_logits =
      routing_weights_backward(layer.scores, layer.indices, grad_weights, context.spec->router_scale);
  weight_gradient(grad_logits, layer.router_input, gradients.router, accumulate);
  return grad_input.add_(project(grad_logits, weights.router.to(at::kFloat).t()));
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
  run_router(context, weights, {}, expert_counts, kept.scores, false, layer);
  layer.gate_up = kept.gate_up;
  if (saved != nullptr) saved->expert_indices = layer.indices;
  return run_experts(context, weights, layer);
}

std::shared_ptr<RecomputedLayer> recompute_layer(const LayerContext& context, const LayerTensors& weights,
                                                 const Row& row, const SavedLayer& saved) {
  const c10::NoGradGuard no_grad;
  auto layer = std::make_shared<RecomputedLayer>();
  if (saved.kept.all()) {
    take_attention(context, weights, saved, *layer);
  } else {
    run_attention(context, weights, row, saved.input, saved.kept, true, *layer);
  }
  layer->dense = {saved.kept.gate, saved.kept.up};
  layer->gate_up = saved.kept.gate_up;
  if (!is_moe(context)) return layer;
  GANYMEDE_CHECK(saved.expert_indices.defined(), "layer {} is recomputed without its expert indices", context.layer);
  run_router(context, weights, saved.expert_indices, nullptr, saved.kept.scores, true, *layer);
  return layer;
}

at::Tensor backward_layer(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                          const Row& row, RecomputedLayer& layer, const at::Tensor& grad_output, bool accumulate) {
  const c10::NoGradGuard no_grad;
  const double eps = context.spec->norm_eps;
  const auto grad_feed = is_moe(context)
                             ? moe_backward(context, weights, gradients, layer, grad_output, accumulate)
                             : feed_forward_backward(feed_forward_tensors(weights), feed_forward_tensors(gradients),
                                                     layer.feed_input, grad_output, accumulate, layer.dense);
  const auto grad_middle =
      rms_norm_backward(layer.middle, weights.post_norm, grad_feed, grad_output, gradients.post_norm, eps, accumulate);
  const auto grad_normed = layer_attention_backward(context, weights, gradients, row, layer.attention, layer.normed,
                                                    grad_middle, accumulate);
  return rms_norm_backward(layer.input, weights.input_norm, grad_normed, grad_middle, gradients.input_norm, eps,
                           accumulate);
}

}  // namespace ganymede::worker::model
