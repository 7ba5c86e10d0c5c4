#include "services/worker/model/layer_steps.h"

#include "services/worker/model/matmul.h"
#include "services/worker/model/rms_norm.h"
#include "services/worker/model/router.h"

namespace ganymede::worker::model {

bool is_moe(const LayerContext& context) {
  return context.spec->layers.at(static_cast<std::size_t>(context.layer)).moe;
}

void run_attention(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
                   const KeptLayer& kept, bool again, RecomputedLayer& layer) {
  const double eps = context.spec->norm_eps;
  layer.input = input;
  layer.normed = rms_norm(input, weights.input_norm, eps, kept.normed);
  layer.attention = layer_attention(context, weights, row, layer.normed, kept, again);
  layer.middle = project(layer.attention.result.output, weights.o_proj, kept.middle).add_(input);
  layer.feed_input = rms_norm(layer.middle, weights.post_norm, eps, kept.feed_input);
}

void restore_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                       const SavedLayer& saved, RecomputedLayer& layer) {
  if (!saved.kept.all()) return run_attention(context, weights, row, saved.input, saved.kept, true, layer);
  layer.input = saved.input;
  layer.normed = saved.kept.normed;
  layer.attention = kept_attention(context, weights, saved.kept);
  layer.middle = saved.kept.middle;
  layer.feed_input = saved.kept.feed_input;
}

at::Tensor run_router(const LayerContext& context, const LayerTensors& weights, const at::Tensor& indices,
                      std::int64_t* counts, const at::Tensor& scores, bool again, RecomputedLayer& layer) {
  const auto& spec = *context.spec;
  layer.router_input = layer.feed_input.to(at::kFloat);
  layer.scores =
      again && scores.defined() ? scores : router_scores(layer.router_input, weights.router.to(at::kFloat), scores);
  layer.indices = indices.defined()
                      ? indices
                      : select_experts(layer.scores, weights.selection_bias, spec.top_k, spec.router_groups, counts);
  return routing_weights(layer.scores, layer.indices, spec.router_scale);
}

void router_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                     const RecomputedLayer& layer, const at::Tensor& grad_weights, const at::Tensor& grad_input,
                     bool accumulate) {
  const auto grad_logits =
      routing_weights_backward(layer.scores, layer.indices, grad_weights, context.spec->router_scale);
  weight_gradient(grad_logits, layer.router_input, gradients.router, accumulate);
  grad_input.add_(project(grad_logits, weights.router.to(at::kFloat).t()));
}

at::Tensor attention_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                              const Row& row, const RecomputedLayer& layer, const at::Tensor& grad_output,
                              const at::Tensor& grad_feed, bool accumulate) {
  const double eps = context.spec->norm_eps;
  const auto grad_middle =
      rms_norm_backward(layer.middle, weights.post_norm, grad_feed, grad_output, gradients.post_norm, eps, accumulate);
  const auto grad_normed = layer_attention_backward(context, weights, gradients, row, layer.attention, layer.normed,
                                                    grad_middle, accumulate);
  return rms_norm_backward(layer.input, weights.input_norm, grad_normed, grad_middle, gradients.input_norm, eps,
                           accumulate);
}

}  // namespace ganymede::worker::model
