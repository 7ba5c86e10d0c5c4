#include "common/newton_schulz/bf16/tile_product.h"

#include <algorithm>
#include <functional>

#include "common/newton_schulz/bf16/dot_kernel.h"
#include "common/newton_schulz/orthogonalise.h"

namespace ganymede::newton_schulz::bf16 {

namespace {

constexpr std::int64_t inner_part = 512;  // of the inner dimension, at a time
constexpr std::int64_t largest_tile = 512, smallest_tile = 128;
constexpr std::int64_t tiles_a_worker = 3;  // so many keep all busy until nearly the end

std::int64_t panels_of(std::int64_t length) { return (length + panel - 1) / panel; }

Source at(const Matrices& matrices, std::int64_t matrix, std::int64_t row, std::int64_t col) {
  return {static_cast<const std::uint16_t*>(matrices.data) + (matrix * matrices.rows + row) * matrices.cols + col,
          matrices.cols};
}

/// The two operands of a tile, in panels, for one part of the inner dimension.
class Panels {
 public:
  Panels(const Product& product, const Tile& tile, std::byte* memory) : product_(product), tile_(tile) {
    left_ = reinterpret_cast<std::uint32_t*>(memory);
    right_ = shared() ? left_ : left_ + panels_of(tile.rows) * panel * inner_part / 2;
  }

  static std::int64_t bytes(const Tile& tile) {
    return (panels_of(tile.rows) + panels_of(tile.cols)) * panel * inner_part * 2;
  }

  void pack(std::int64_t first, std::int64_t length) {
    const Operand &left = product_.left, &right = product_.right;
    if (left.transposed) {
      pack_columns(at(left.matrices, tile_.matrix, first, tile_.row), tile_.rows, length, left_);
    } else {
      pack_rows(at(left.matrices, tile_.matrix, tile_.row, first), tile_.rows, length, left_);
    }
    if (shared()) return;
    if (right.transposed) {
      pack_rows(at(right.matrices, tile_.matrix, tile_.col, first), tile_.cols, length, right_);
    } else {
      pack_columns(at(right.matrices, tile_.matrix, first, tile_.col), tile_.cols, length, right_);
    }
  }

  const std::uint32_t* left(std::int64_t row, std::int64_t pairs) const { return left_ + row * pairs * panel; }
  const std::uint32_t* right(std::int64_t column, std::int64_t pairs) const { return right_ + column * pairs * panel; }

 private:
  /// A matrix times its transpose.
  bool shared() const {
    return product_.left.matrices.data == product_.right.matrices.data &&
           product_.left.transposed != product_.right.transposed && tile_.row == tile_.col && tile_.rows == tile_.cols;
  }

  const Product& product_;
  const Tile& tile_;
  std::uint32_t *left_, *right_;
};

/// Where the panel × panel elements at (row, col) of the tile's matrix go, and what is added to them.
Block block_at(const Product& product, const Tile& tile, std::int64_t row, std::int64_t col) {
  Block block;
  const auto& out = product.out;
  auto* matrix = static_cast<std::uint16_t*>(out.data) + tile.matrix * out.rows * out.cols;
  block.out = matrix + row * out.cols + col;
  if (product.symmetric && row != col) block.mirrored = matrix + col * out.cols + row;
  if (product.beta != 0) block.addend = at(product.addend, tile.matrix, row, col).data;
  block.alpha = product.alpha;
  block.beta = product.beta;
  block.stride = out.cols;
  block.rows = std::min(panel, tile.row + tile.rows - row);
  block.columns = std::min(panel, tile.col + tile.cols - col);
  return block;
}

/// Of a symmetric product, what lies below the diagonal is left out.
template <class Visit>
void for_each_block(const Product& product, const Tile& tile, const Visit& visit) {
  for (std::int64_t row = 0; row < panels_of(tile.rows); ++row) {
    for (std::int64_t col = 0; col < panels_of(tile.cols); ++col) {
      if (product.symmetric && tile.col + col * panel < tile.row + row * panel) continue;
      visit(row, col);
    }
  }
}

}  // namespace

void multiply_tile(const Product& product, const Tile& tile) {
  thread_local Workspace scratch;
  const std::int64_t inner = product.left.transposed ? product.left.matrices.rows : product.left.matrices.cols;
  const std::int64_t across = panels_of(tile.cols);
  const std::int64_t sums_bytes =
      inner > inner_part ? panels_of(tile.rows) * across * panel * panel * static_cast<std::int64_t>(sizeof(float)) : 0;
  std::byte* memory = scratch.reserve(sums_bytes + Panels::bytes(tile));
  auto* sums = reinterpret_cast<float*>(memory);
  Panels panels(product, tile, memory + sums_bytes);
  for (std::int64_t first = 0; first < inner; first += inner_part) {
    const std::int64_t length = std::min(inner_part, inner - first), pairs = (length + 1) / 2;
    panels.pack(first, length);
    for_each_block(product, tile, [&](std::int64_t row, std::int64_t col) {
      Block block = block_at(product, tile, tile.row + row * panel, tile.col + col * panel);
      block.left = panels.left(row, pairs);
      block.right = panels.right(col, pairs);
      block.pairs = pairs;
      block.sums = sums + (row * across + col) * panel * panel;
      block.first = first == 0;
      block.last = first + length == inner;
      multiply(block);
    });
  }
}

void multiply(Products& products, const Product& product) {
  std::int64_t size = largest_tile;
  while (size > smallest_tile && tiles_of(product, size) < tiles_a_worker * products.workers()) size /= 2;
  const auto one = [&](std::int64_t index) { multiply_tile(product, tile_at(product, size, index)); };
  products.for_each(tiles_of(product, size), std::cref(one));
}

void multiply_alone(const Product& product) {
  for (std::int64_t index = 0; index < tiles_of(product, largest_tile); ++index) {
    multiply_tile(product, tile_at(product, largest_tile, index));
  }
}

}  // namespace ganymede::newton_schulz::bf16
