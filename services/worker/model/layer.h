#pragma once

#include <memory>

#include "services/worker/model/tensors.h"

/// Forward, recomputation and backward of one transformer layer for one row. Layers whose tokens travel to experts of
/// other ranks: layer_parts.h.
namespace ganymede::worker::model {

struct LayerContext {
  const model_spec::ModelSpec* spec = nullptr;
  const RotaryTables* rotary = nullptr;
  int layer = 0;
  int first_expert = 0, local_experts = 0;
  float* largest_logits = nullptr;  // [heads], as in AttentionOutput: raised by a forward, not when it is done again
};

/// What is kept of a layer and row beside its input and its experts, by `recompute`: nothing with full; attention and
/// log_sum with selective; all with none. What is not kept is undefined.
struct KeptLayer {
  at::Tensor attention;                   // [T, heads · v_dim], before the output projection
  at::Tensor log_sum;                     // fp32, as in AttentionOutput
  at::Tensor normed, middle, feed_input;  // [T, H]
  at::Tensor query, key, value;           // fp32, as in AttentionInput
  at::Tensor scores;                      // fp32 [T, E], of the router
  at::Tensor gate, up;                    // dense layers: [T, F]
  at::Tensor gate_up;  // [slots, 2F]; undefined where the rows of other ranks are sent again: then their hidden
                       // activations are computed again
  at::Tensor choices;  // int32 [T, 2K], where rows travel and are not kept by who receives them
  at::Tensor received_rows, received_choices;  // where they are: [N, H] and int32 [N, 2K]
  bool all() const { return normed.defined(); }
};

/// All that is kept of a layer and row until its backward.
struct SavedLayer {
  at::Tensor input;  // [T, H] compute dtype
  at::Tensor
      expert_indices;  // int32 [T, K]; undefined in dense layers. Kept, so that recomputation cannot route differently
  KeptLayer kept = {};
};

/// Output [T, H]. With `saved`, fills `saved->expert_indices` and what is defined in `saved->kept` (the caller keeps
/// the input). With `expert_counts`
/// ([E] int64, zeroed or accumulated by the caller) adds how many tokens chose each expert. No autograd graph is made.
at::Tensor forward_layer(const LayerContext& context, const LayerTensors& weights, const Row& row,
                         const at::Tensor& input, SavedLayer* saved, std::int64_t* expert_counts);

/// Everything that backward needs: from what was saved, the rest recomputed.
struct RecomputedLayer;
std::shared_ptr<RecomputedLayer> recompute_layer(const LayerContext& context, const LayerTensors& weights,
                                                 const Row& row, const SavedLayer& saved);

/// Gradient of the loss by the layer's input, [T, H]. Parameter gradients go into `gradients` (fp32): written when
/// `accumulate` is false, else this row's gradient is computed whole and then added, so that the sum over rows has
/// the same bits as a sum over ranks of one row each.
at::Tensor backward_layer(const LayerContext& context, const LayerTensors& weights, const LayerTensors& gradients,
                          const Row& row, RecomputedLayer& recomputed, const at::Tensor& grad_output, bool accumulate);

}  // namespace ganymede::worker::model
