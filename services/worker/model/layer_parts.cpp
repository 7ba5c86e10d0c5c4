#include "services/worker/model/layer_parts.h"

#include <ATen/core/grad_mode.h>

#include "common/base/error.h"
#include "services/worker/model/expert_dispatch.h"
#include "services/worker/model/layer_steps.h"

namespace ganymede::worker::model {

namespace {

ExpertInput input_of(const LayerContext& context, const ReceivedRows& received) {
  const auto indices = indices_of(received.choices);
  return {received.rows, indices, routing_of(received.choices),
          order_by_expert(indices, context.first_expert, context.local_experts)};
}

}  // namespace

void forward_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                       const at::Tensor& input, const at::Tensor& middle, const OwnRows& own, SavedLayer* saved,
                       std::int64_t* expert_counts) {
  const c10::NoGradGuard no_grad;
  KeptLayer kept = saved != nullptr ? saved->kept : KeptLayer();
  kept.middle = middle;
  kept.feed_input = own.rows;
  RecomputedLayer layer;
  run_attention(context, weights, row, input, kept, false, layer);
  layer.attention = {};
  const auto routing = run_router(context, weights, {}, expert_counts, kept.scores, false, layer);
  pack_choices(layer.indices, routing, own.choices);
  if (saved != nullptr) saved->expert_indices = layer.indices;
}

void forward_experts(const LayerContext& context, const LayerTensors& weights, const ReceivedRows& received,
                     const at::Tensor& out) {
  const c10::NoGradGuard no_grad;
  experts(expert_tensors(weights), input_of(context, received), {}, received.gate_up, out);
}

std::shared_ptr<RecomputedLayer> recompute_attention(const LayerContext& context, const LayerTensors& weights,
                                                     const Row& row, const SavedLayer& saved, const OwnRows& own) {
  const c10::NoGradGuard no_grad;
  GANYMEDE_CHECK(saved.expert_indices.defined(), "layer {} is recomputed without its expert indices", context.layer);
  auto layer = std::make_shared<RecomputedLayer>();
  SavedLayer from = saved;
  if (own.rows.defined()) from.kept.feed_input = own.rows;
  restore_attention(context, weights, row, from, *layer);
  const auto routing = run_router(context, weights, saved.expert_indices, nullptr, saved.kept.scores, true, *layer);
  if (!own.rows.defined()) return layer;
  pack_choices(layer->indices, routing, own.choices);
  if (layer->router_input.is_same(layer->feed_input)) layer->router_input = layer->feed_input.clone();
  layer->feed_input.reset();
  return layer;
}

void backward_experts(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                      const ReceivedRows& received, const at::Tensor& grad_rows, const at::Tensor& grad_weights,
                      bool accumulate) {
  const c10::NoGradGuard no_grad;
  grad_weights.zero_();
  experts_backward(expert_tensors(weights), expert_tensors(gradients), input_of(context, received), grad_rows,
                   accumulate, received.gate_up, {grad_rows, grad_weights});
}

at::Tensor backward_attention(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                              const Row& row, RecomputedLayer& layer, const at::Tensor& grad_output,
                              const at::Tensor& grad_feed, const at::Tensor& grad_routing, bool accumulate) {
  const c10::NoGradGuard no_grad;
  router_backward(context, weights, gradients, layer, grad_routing, grad_feed, accumulate);
  return attention_backward(context, weights, gradients, row, layer, grad_output, grad_feed, accumulate);
}

}  // namespace ganymede::worker::model
