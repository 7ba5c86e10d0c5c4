#pragma once

#include <ATen/ATen.h>

/// Dense feed-forward network (SwiGLU).
namespace ganymede::worker::model {

struct FeedForwardTensors {
  const at::Tensor& gate;  // [F, H]
  const at::Tensor& up;    // [F, H]
  const at::Tensor& down;  // [H, F]
};

/// Both [T, F]; undefined where nothing is kept.
struct FeedForwardKept {
  at::Tensor gate, up;
};

/// [T, H] of x [T, H]. What is defined in `kept` is filled for backward.
at::Tensor feed_forward(const FeedForwardTensors& weights, const at::Tensor& x, const FeedForwardKept& kept = {});

/// Gradient by x; the weights' gradients (fp32) are written, or computed whole and then added with `accumulate`. What
/// is not in `kept` is computed again; what is, is used up.
at::Tensor feed_forward_backward(const FeedForwardTensors& weights, const FeedForwardTensors& gradients,
                                 const at::Tensor& x, const at::Tensor& grad_output, bool accumulate,
                                 const FeedForwardKept& kept = {});

}  // namespace ganymede::worker::model
