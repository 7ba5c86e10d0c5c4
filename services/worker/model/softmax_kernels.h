#pragma once

#include "services/worker/model/row_kernels.h"

#include <cstdint>

/// Rows of logits: attention's softmax with its mask and sink, and cross-entropy.
namespace ganymede::worker::model::kernels {

struct SoftmaxRow {
  float maximum = 0;  // of the scaled logits seen, and the sink
  float sum = 0;      // of e^(scaled logit - maximum), sink included
  float largest = 0;  // scaled logit seen, the sink left out; of no meaning where `sum` is not finite
};

/// Replaces logits[begin, end) by e^(logit · scale - maximum) and the others of [0, n) by 0: probabilities, not yet
/// divided by the sum. `sink`: one more logit in the denominator, -infinity for none. begin < end.
SoftmaxRow softmax(float* logits, std::size_t begin, std::size_t end, std::size_t n, float scale, float sink);

/// Backward of the same row: logits become probabilities e^(logit · scale - log_sum), grad (by the probabilities)
/// becomes the gradient by the unscaled logits, probability · (grad - delta) · scale. 0 outside [begin, end).
void softmax_backward(float* logits, float* grad, std::size_t begin, std::size_t end, std::size_t n, float scale,
                      float log_sum, float delta);

/// log Σ e^logit.
float log_sum_exp(const void* logits, std::size_t n, Element element);

/// Replaces logits by (e^(logit - log_sum) - [i == target]) · scale.
void cross_entropy_gradient(void* logits, std::size_t n, float log_sum, std::int64_t target, float scale,
                            Element element);

float element_at(const void* row, std::int64_t index, Element element);

}  // namespace ganymede::worker::model::kernels
