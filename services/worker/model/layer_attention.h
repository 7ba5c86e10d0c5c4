#pragma once

#include "services/worker/model/attention.h"
#include "services/worker/model/layer.h"

/// The attention half of a layer: projections around the attention itself.
namespace ganymede::worker::model {

struct LayerAttention {
  AttentionShape shape;
  AttentionInput input;
  AttentionOutput result;
};

/// Attention of the normed input [T, H]; `result.output` still lacks the output projection. Written to what is defined
/// in `kept`; with `again`, what `kept.result` holds is taken from there and not computed.
LayerAttention layer_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                               const at::Tensor& normed, const KeptLayer& kept, bool again);

/// The attention whose every part is in `kept`.
LayerAttention kept_attention(const LayerContext& context, const LayerTensors& weights, const KeptLayer& kept);

/// Gradient by the normed input, from the gradient by the output projection's result. Gradients of the four
/// projections and of the sinks are written or added.
at::Tensor layer_attention_backward(const LayerContext& context, const LayerTensors& weights,
                                    const LayerTensors& gradients, const Row& row, const LayerAttention& attention,
                                    const at::Tensor& normed, const at::Tensor& grad_output, bool accumulate);

}  // namespace ganymede::worker::model
