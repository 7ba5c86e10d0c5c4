#include "services/worker/model/matmul.h"

#include "common/base/error.h"
#include "services/worker/model/parallel.h"

namespace ganymede::worker::model {

namespace {

constexpr std::int64_t tile_rows = 128, tile_columns = 512;

at::Tensor tile_of(const at::Tensor& matrix, std::int64_t row, std::int64_t rows, std::int64_t column,
                   std::int64_t columns) {
  return matrix.narrow(0, row, rows).narrow(1, column, columns);
}

/// Calls f(row, rows, column, columns) for the tiles of a [rows, columns] matrix, in parallel.
template <class F>
void for_tiles(std::int64_t rows, std::int64_t columns, const F& f) {
  const std::int64_t down = (rows + tile_rows - 1) / tile_rows, across = (columns + tile_columns - 1) / tile_columns;
  fork_join(down * across, 1, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one_thread;
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = tile % down * tile_rows, column = tile / down * tile_columns;
      f(row, std::min(tile_rows, rows - row), column, std::min(tile_columns, columns - column));
    }
  });
}

void to_fp32(const at::Tensor& product, const at::Tensor& out, bool add) {
  const auto element = element_of(product);
  const std::int64_t bytes = product.element_size() * product.stride(0);
  for (std::int64_t row = 0; row < product.size(0); ++row) {
    kernels::to_fp32(static_cast<const char*>(product.const_data_ptr()) + row * bytes,
                     out.data_ptr<float>() + row * out.stride(0), static_cast<std::size_t>(product.size(1)), add,
                     element);
  }
}

}  // namespace

kernels::Element element_of(const at::Tensor& tensor) {
  GANYMEDE_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16,
                 "a tensor of type {} where fp32 or bf16 is computed", c10::toString(tensor.scalar_type()));
  return tensor.scalar_type() == at::kFloat ? kernels::Element::fp32 : kernels::Element::bf16;
}

void multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, bool add) {
  for_tiles(out.size(0), out.size(1), [&](auto row, auto rows, auto column, auto columns) {
    auto tile = tile_of(out, row, rows, column, columns);
    const auto left = a.narrow(0, row, rows);
    const auto right = b.narrow(1, column, columns);
    if (add) {
      tile.addmm_(left, right);
    } else {
      at::mm_out(tile, left, right);
    }
  });
}

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& given) {
  auto out = given.defined() ? given : at::empty({x.size(0), weight.size(0)}, x.options());
  multiply(x, weight.t(), out);
  return out;
}

void weight_gradient(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& gradient, bool add) {
  if (grad_output.size(0) == 0) {
    if (!add) gradient.zero_();
    return;
  }
  const auto left = grad_output.t();
  const bool direct = input.scalar_type() == at::kFloat && !add;
  for_tiles(gradient.size(0), gradient.size(1), [&](auto row, auto rows, auto column, auto columns) {
    auto tile = tile_of(gradient, row, rows, column, columns);
    auto product = direct ? tile : at::empty({rows, columns}, input.options());
    at::mm_out(product, left.narrow(0, row, rows), input.narrow(1, column, columns));
    if (!direct) to_fp32(product, tile, add);
  });
}

}  // namespace ganymede::worker::model
