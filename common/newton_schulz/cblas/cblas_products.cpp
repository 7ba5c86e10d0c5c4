#include "common/newton_schulz/cblas/cblas_products.h"

#include <cblas.h>

#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/newton_schulz/tiles.h"

namespace ganymede::newton_schulz {

namespace {

constexpr std::int64_t tile_size = 256;

/// The part of a batch's matrix that begins at (row, col).
float* at(const Matrices& matrices, std::int64_t matrix, std::int64_t row, std::int64_t col) {
  return static_cast<float*>(matrices.data) + (matrix * matrices.rows + row) * matrices.cols + col;
}

void multiply_tile(const Product& product, const Tile& tile) {
  const auto& [left, left_transposed] = product.left;
  const auto& [right, right_transposed] = product.right;
  float* out = at(product.out, tile.matrix, tile.row, tile.col);
  if (product.beta != 0) {
    const float* addend = at(product.addend, tile.matrix, tile.row, tile.col);
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      std::memcpy(out + row * product.out.cols, addend + row * product.addend.cols,
                  static_cast<std::size_t>(tile.cols) * sizeof(float));
    }
  }
  const auto inner = left_transposed ? left.rows : left.cols;
  cblas_sgemm(CblasRowMajor, left_transposed ? CblasTrans : CblasNoTrans, right_transposed ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(tile.rows), static_cast<blasint>(tile.cols), static_cast<blasint>(inner),
              product.alpha, left_transposed ? at(left, tile.matrix, 0, tile.row) : at(left, tile.matrix, tile.row, 0),
              static_cast<blasint>(left.cols),
              right_transposed ? at(right, tile.matrix, tile.col, 0) : at(right, tile.matrix, 0, tile.col),
              static_cast<blasint>(right.cols), product.beta, out, static_cast<blasint>(product.out.cols));
}

}  // namespace

CblasProducts::CblasProducts()
    : CblasProducts(1, [](std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
        for (std::int64_t task = 0; task < tasks; ++task) body(task);
      }) {}

CblasProducts::CblasProducts(int workers, RunTasks run) : workers_(workers), run_(std::move(run)) {
  openblas_set_num_threads(1);
}

void CblasProducts::multiply(const Product& product) {
  for_each_tile(*this, product, tile_size, [&](const Tile& tile) { multiply_tile(product, tile); });
}

void CblasProducts::multiply_alone(const Product& product) {
  for_each_tile_alone(*this, product, tile_size, [&](const Tile& tile) { multiply_tile(product, tile); });
}

}  // namespace ganymede::newton_schulz
