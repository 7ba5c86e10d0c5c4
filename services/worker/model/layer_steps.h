#pragma once

#include "services/worker/model/experts.h"
#include "services/worker/model/feed_forward.h"
#include "services/worker/model/layer.h"
#include "services/worker/model/layer_attention.h"

/// Steps that whole layers and layers in parts have in common. For this folder only.
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
  ExpertInput expert_input;    // of a whole layer
  FeedForwardKept dense;       // hidden activations, where they were kept
  at::Tensor gate_up;
};

bool is_moe(const LayerContext& context);

inline ExpertTensors expert_tensors(const LayerTensors& tensors) {
  return {tensors.expert_gate_up, tensors.expert_down};
}

/// Up to the feed-forward network's input. With `again`, what `kept` has of the attention's result is not computed.
void run_attention(const LayerContext& context, const LayerTensors& weights, const Row& row, const at::Tensor& input,
                   const KeptLayer& kept, bool again, RecomputedLayer& layer);

/// The same for backward, from what was saved.
void restore_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                       const SavedLayer& saved, RecomputedLayer& layer);

/// Scores and indices; returns the routing weights. Without `indices` the experts are selected, and counted if `counts`
/// is given. `scores`: where they are kept; they are there already with `again`.
at::Tensor run_router(const LayerContext& context, const LayerTensors& weights, const at::Tensor& indices,
                      std::int64_t* counts, const at::Tensor& scores, bool again, RecomputedLayer& layer);

/// Adds the router's share to `grad_input`, the gradient by its input; its weights' gradient is written or added.
void router_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                     const RecomputedLayer& layer, const at::Tensor& grad_weights, const at::Tensor& grad_input,
                     bool accumulate);

/// From the gradient by the feed-forward network's input to the one by the layer's.
at::Tensor attention_backward(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                              const Row& row, const RecomputedLayer& layer, const at::Tensor& grad_output,
                              const at::Tensor& grad_feed, bool accumulate);

}  // namespace ganymede::worker::model
