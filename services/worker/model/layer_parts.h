#pragma once

#include "services/worker/model/layer.h"

/// A layer with experts in two parts, for when tokens travel to experts of other ranks between them: forward is
/// forward_attention, dispatch, forward_experts, combine; backward is recompute_attention, dispatch (also of the
/// gradient), backward_experts, combine, backward_attention. N = rows that came here.
namespace ganymede::worker::model {

/// What this rank sends of a row.
struct OwnRows {
  at::Tensor rows;     // [T, H], input of the feed-forward network
  at::Tensor choices;  // as pack_choices makes them
};

/// What came here.
struct ReceivedRows {
  at::Tensor rows;     // [N, H]
  at::Tensor choices;  // int32 [N, 2K]
  at::Tensor gate_up;  // where hidden activations are kept: [slots, 2F], or undefined
};

/// Attention and router. Written: `middle` [T, H], which the sum of the experts is added to; `own`; and what
/// forward_layer writes to `saved` and `expert_counts`.
void forward_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                       const at::Tensor& input, const at::Tensor& middle, const OwnRows& own, SavedLayer* saved,
                       std::int64_t* expert_counts);

/// What the experts of this place make of each row, [N, H]; `out` may be the rows themselves.
void forward_experts(const LayerContext& context, const LayerTensors& weights, const ReceivedRows& received,
                     const at::Tensor& out);

/// What backward_attention needs. `own` is written to where it is defined; nothing refers to it afterwards.
std::shared_ptr<RecomputedLayer> recompute_attention(const LayerContext& context, const LayerTensors& weights,
                                                     const Row& row, const SavedLayer& saved, const OwnRows& own);

/// Gradients of the experts' weights, and in place of the gradient `grad_rows` [N, H] by the results the one by the
/// rows; `grad_weights` fp32 [N, K]: by the routing weights.
void backward_experts(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                      const ReceivedRows& received, const at::Tensor& grad_rows, const at::Tensor& grad_weights,
                      bool accumulate);

/// Gradient by the layer's input, [T, H], from the one by its output and, combined from the places, those by what this
/// rank sent ([T, H], changed) and by its routing weights (fp32 [T, K]). Other gradients as in backward_layer.
at::Tensor backward_attention(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                              const Row& row, RecomputedLayer& recomputed, const at::Tensor& grad_output,
                              const at::Tensor& grad_feed, const at::Tensor& grad_routing, bool accumulate);

}  // namespace ganymede::worker::model
