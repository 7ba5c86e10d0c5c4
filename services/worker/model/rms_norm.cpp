#include "services/worker/model/rms_norm.h"

#include <vector>

#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

constexpr std::int64_t block = 64;  // rows whose weight gradients are summed one after another; fixed, like the order

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& given) {
  auto out = given.defined() ? given : at::empty_like(x);
  const Rows from(x), to(out);
  parallel_rows(x.size(0), from.size, [&](std::int64_t row) {
    kernels::rms_norm(from[row], weight.const_data_ptr(), to[row], from.size, static_cast<float>(eps), from.element);
  });
  return out;
}

at::Tensor rms_norm_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& grad_output,
                             const at::Tensor& residual, const at::Tensor& grad_weight, double eps, bool accumulate) {
  auto grad_x = at::empty_like(x);
  const Rows input(x), grad(grad_output), out(grad_x), base(residual.defined() ? residual : x);
  const std::int64_t rows = x.size(0), blocks = (rows + block - 1) / block;
  std::vector<float> partial(static_cast<std::size_t>(blocks) * input.size);
  fork_join(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin * block; row < std::min(rows, end * block); ++row) {
      kernels::rms_norm_backward(input[row], weight.const_data_ptr(), grad[row],
                                 residual.defined() ? base[row] : nullptr, out[row],
                                 partial.data() + static_cast<std::size_t>(row / block) * input.size, input.size,
                                 static_cast<float>(eps), input.element);
    }
  });
  std::vector<float> total(input.size);
  for (std::int64_t b = 0; b < blocks; ++b) {
    kernels::to_fp32(partial.data() + static_cast<std::size_t>(b) * input.size, total.data(), input.size, true,
                     kernels::Element::fp32);
  }
  kernels::to_fp32(total.data(), grad_weight.data_ptr<float>(), input.size, accumulate, kernels::Element::fp32);
  return grad_x;
}

}  // namespace ganymede::worker::model
