#pragma once

#include "services/worker/model/tensors.h"

/// Sigmoid router with a selection bias, in fp32.
namespace ganymede::worker::model {

/// Scores in (0, 1), fp32 [T, E], of x (fp32 [T, H]) and the router's weight (fp32 [E, H]). Written to `out` if it is
/// defined.
at::Tensor router_scores(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out = {});

/// int32 [T, K]: the experts with the largest score + bias, best first; the lower index where they are equal. With
/// several groups, the K / groups best inside each of the equal groups of neighbouring experts: group after group in
/// order of their experts, best first within each. Indices are valid and different even where scores are NaN. With
/// `counts` ([E]) adds how many tokens chose each expert.
at::Tensor select_experts(const at::Tensor& scores, const at::Tensor& bias, std::int64_t top_k, std::int64_t groups,
                          std::int64_t* counts);

/// fp32 [T, K]: score / (sum of the chosen scores + 1e-20) · scale.
at::Tensor routing_weights(const at::Tensor& scores, const at::Tensor& indices, double scale);

/// Gradient by the router's logits, fp32 [T, E], of a loss with gradient grad_weights [T, K] by the routing weights.
at::Tensor routing_weights_backward(const at::Tensor& scores, const at::Tensor& indices, const at::Tensor& grad_weights,
                                    double scale);

}  // namespace ganymede::worker::model
