#pragma once

#include "services/worker/model/tensors.h"

/// The two ends of the model: embedding, and final norm + head + chunked cross-entropy.
namespace ganymede::worker::model {

/// [T, H] in the weight's dtype.
at::Tensor embed(const at::Tensor& weight, const Row& row);

/// Adds or writes (see backward_layer) the gradient of the embedding, fp32 [V, H]. Deterministic: occurrences of a
/// token are summed in order of position.
void embed_backward(const Row& row, const at::Tensor& grad_output, const at::Tensor& grad_weight, bool accumulate);

struct HeadTensors {
  at::Tensor norm;  // [H]
  at::Tensor head;  // [V, H]
};

/// Loss of a row (sum over its loss tokens, natural log, fp64) without gradients. Logits of at most `chunk` tokens
/// are held at once.
double head_loss(const model_spec::ModelSpec& spec, const HeadTensors& weights, const Row& row,
                 const at::Tensor& hidden, std::int64_t chunk);

struct HeadResult {
  double loss_sum = 0;     // over the row's loss tokens, not divided
  at::Tensor grad_hidden;  // [T, H]
};

/// Loss and gradients in one pass over chunks; gradients are those of loss_sum · scale (scale = 1 / loss tokens of
/// the whole step).
HeadResult head_forward_backward(const model_spec::ModelSpec& spec, const HeadTensors& weights,
                                 const HeadTensors& gradients, const Row& row, const at::Tensor& hidden, double scale,
                                 std::int64_t chunk, bool accumulate);

/// Logits fp32 [n, V] of hidden states [n, H].
at::Tensor head_logits(const model_spec::ModelSpec& spec, const HeadTensors& weights, const at::Tensor& hidden);

}  // namespace ganymede::worker::model
