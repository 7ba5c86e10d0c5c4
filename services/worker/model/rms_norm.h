#pragma once

#include <ATen/ATen.h>

namespace ganymede::worker::model {

/// weight [H] · x [T, H] / rms(x) of each row: normalised in fp32, rounded to x's dtype, then multiplied. Written to
/// `out` if it is defined.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& out = {});

/// Gradient by x [T, H] of a loss with gradient grad_output by the norm's result; plus `residual` [T, H] if defined.
/// The weight's gradient (fp32 [H]) is written, or computed whole and then added with `accumulate`.
at::Tensor rms_norm_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& grad_output,
                             const at::Tensor& residual, const at::Tensor& grad_weight, double eps, bool accumulate);

}  // namespace ganymede::worker::model
