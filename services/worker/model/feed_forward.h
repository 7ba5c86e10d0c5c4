#pragma once

#include <ATen/ATen.h>

/// Dense feed-forward network (SwiGLU).
namespace ganymede::worker::model {

struct FeedForwardTensors {
  const at::Tensor& gate;  // [F, H]
  const at::Tensor& up;    // [F, H]
  const at::Tensor& down;  // [H, F]
};

/// [T, H] of x [T, H].
at::Tensor feed_forward(const FeedForwardTensors& weights, const at::Tensor& x);

/// Gradient by x; the weights' gradients (fp32) are written, or computed whole and then added with `accumulate`.
at::Tensor feed_forward_backward(const FeedForwardTensors& weights, const FeedForwardTensors& gradients,
                                 const at::Tensor& x, const at::Tensor& grad_output, bool accumulate);

}  // namespace ganymede::worker::model
