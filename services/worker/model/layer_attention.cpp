#include "services/worker/model/layer_attention.h"

#include <cmath>

#include "services/worker/model/matmul.h"
#include "services/worker/model/rotary.h"

namespace ganymede::worker::model {

namespace {

const model_spec::LayerSpec& layer_spec(const LayerContext& context) {
  return context.spec->layers.at(static_cast<std::size_t>(context.layer));
}

AttentionShape shape_of(const LayerContext& context) {
  const auto& spec = *context.spec;
  const auto& layer = layer_spec(context);
  return {spec.heads, layer.kv_heads, spec.qk_dim,
          spec.v_dim, layer.window,   static_cast<float>(1 / std::sqrt(static_cast<double>(spec.qk_dim)))};
}

HeadLayout query_layout(const AttentionShape& shape) { return {shape.kv_heads, shape.group(), shape.qk_dim}; }
HeadLayout key_layout(const AttentionShape& shape) { return {shape.kv_heads, 1, shape.qk_dim}; }
HeadLayout value_layout(const AttentionShape& shape) { return {shape.kv_heads, 1, shape.v_dim}; }

at::Tensor sinks_of(const LayerTensors& weights) {
  return weights.sinks.defined() ? weights.sinks.to(at::kFloat).contiguous() : at::Tensor();
}

}  // namespace

LayerAttention layer_attention(const LayerContext& context, const LayerTensors& weights, const Row& row,
                               const at::Tensor& normed, const KeptLayer& kept, bool again) {
  LayerAttention attention_of_layer;
  const auto shape = attention_of_layer.shape = shape_of(context);
  const auto& table = context.rotary->table(context.layer);
  const auto position = positions(row);
  auto& input = attention_of_layer.input;
  input.query = split_heads_rotated(project(normed, weights.q_proj), query_layout(shape), table, position, kept.query);
  input.key = split_heads_rotated(project(normed, weights.k_proj), key_layout(shape), table, position, kept.key);
  input.value =
      split_heads_scaled(project(normed, weights.v_proj), value_layout(shape), context.spec->value_scale, kept.value);
  input.sinks = sinks_of(weights);
  attention_of_layer.result = {kept.attention, kept.log_sum};
  if (!again) attention_of_layer.result.largest_logits = context.largest_logits;
  if (!again || !kept.attention.defined()) {
    attention_of_layer.result =
        attention(shape, row.document_begin, input, normed.scalar_type(), attention_of_layer.result);
  }
  return attention_of_layer;
}

LayerAttention kept_attention(const LayerContext& context, const LayerTensors& weights, const KeptLayer& kept) {
  return {shape_of(context), {kept.query, kept.key, kept.value, sinks_of(weights)}, {kept.attention, kept.log_sum}};
}

at::Tensor layer_attention_backward(const LayerContext& context, const LayerTensors& weights,
                                    const LayerTensors& gradients, const Row& row, const LayerAttention& attention,
                                    const at::Tensor& normed, const at::Tensor& grad_output, bool accumulate) {
  const auto& shape = attention.shape;
  const auto& table = context.rotary->table(context.layer);
  const auto position = positions(row);
  const auto dtype = normed.scalar_type();
  weight_gradient(grad_output, attention.result.output, gradients.o_proj, accumulate);
  const auto grad_result = project(grad_output, weights.o_proj.t());
  const auto grads = attention_backward(shape, row.document_begin, attention.input, attention.result, grad_result);
  const auto query = merge_heads_rotated_back(grads.query, query_layout(shape), table, position, dtype);
  const auto key = merge_heads_rotated_back(grads.key, key_layout(shape), table, position, dtype);
  const auto value = merge_heads_scaled(grads.value, value_layout(shape), context.spec->value_scale, dtype);
  weight_gradient(query, normed, gradients.q_proj, accumulate);
  weight_gradient(key, normed, gradients.k_proj, accumulate);
  weight_gradient(value, normed, gradients.v_proj, accumulate);
  if (grads.sinks.defined()) {
    kernels::to_fp32(grads.sinks.const_data_ptr(), gradients.sinks.data_ptr<float>(),
                     static_cast<std::size_t>(shape.heads), accumulate, kernels::Element::fp32);
  }
  auto grad_normed = project(query, weights.q_proj.t());
  multiply(key, weights.k_proj, grad_normed, true);
  multiply(value, weights.v_proj, grad_normed, true);
  return grad_normed;
}

}  // namespace ganymede::worker::model
