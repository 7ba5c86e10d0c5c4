#pragma once

#include <ATen/ATen.h>

#include "services/worker/model/row_kernels.h"

/// Matrix products in tiles of fixed size. A tile is computed by one thread, so the bits do not depend on how many
/// threads there are, whatever the BLAS library does with them. All matrices are 2-D views with one stride of 1.
namespace ganymede::worker::model {

/// fp32 or bf16; anything else is a fault of the caller.
kernels::Element element_of(const at::Tensor& tensor);

/// out [m, n] = a [m, k] · b [k, n], or out += a · b with `add`. All of one dtype. k may be 0.
void multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, bool add = false);

/// x [n, in] · weightᵀ, weight [out, in]: a tensor [n, out] of x's dtype, `out` if it is defined, else a new one.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out = {});

/// gradient (fp32 [out, in]) = grad_outputᵀ [out, n] · input [n, in]; with `add` the product is computed whole and then
/// added. n may be 0.
void weight_gradient(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& gradient, bool add);

}  // namespace ganymede::worker::model
