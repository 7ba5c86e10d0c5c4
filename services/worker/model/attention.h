#pragma once

#include "services/worker/model/tensors.h"

/// Causal attention of one row: documents, sliding window, sink logits, grouped queries. Work follows the documents and
/// windows, not T²; logits are held one block of queries at a time. Computed in fp32 whatever the compute dtype.
namespace ganymede::worker::model {

struct AttentionShape {
  std::int64_t heads = 1, kv_heads = 1, qk_dim = 0, v_dim = 0;
  std::int64_t window = 0;  // tokens seen, itself included; 0: all of the document
  float scale = 1;          // of the logits
  std::int64_t group() const { return heads / kv_heads; }
};

/// fp32, one kv head after another; within it token by token, and for a token its group of query heads.
struct AttentionInput {
  at::Tensor query;  // [kv_heads, T · group, qk_dim]
  at::Tensor key;    // [kv_heads, T, qk_dim]
  at::Tensor value;  // [kv_heads, T, v_dim]
  at::Tensor sinks;  // fp32 [heads]; undefined: none
};

struct AttentionOutput {
  at::Tensor output;   // [T, heads · v_dim] in the compute dtype
  at::Tensor log_sum;  // fp32 [kv_heads, T · group]: log of the softmax denominator, sink included
  /// [heads], or null: raised to the largest scaled logit of each query head, sinks left out; NaN where one is not
  /// finite, whatever comes later.
  float* largest_logits = nullptr;
};

/// The larger one; NaN if either is.
template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

/// Written to `out` where its tensors are defined.
AttentionOutput attention(const AttentionShape& shape, const std::vector<std::int64_t>& document_begin,
                          const AttentionInput& input, at::ScalarType dtype, const AttentionOutput& out = {});

struct AttentionGradients {
  at::Tensor query, key, value;  // as in AttentionInput
  at::Tensor sinks;              // fp32 [heads]; undefined without sinks
};

/// `grad_output` [T, heads · v_dim]. Probabilities are computed again block by block.
AttentionGradients attention_backward(const AttentionShape& shape, const std::vector<std::int64_t>& document_begin,
                                      const AttentionInput& input, const AttentionOutput& output,
                                      const at::Tensor& grad_output);

}  // namespace ganymede::worker::model
