#include "common/newton_schulz/tiles.h"

namespace ganymede::newton_schulz {

namespace {

std::int64_t tiles_along(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }

std::int64_t tiles_a_matrix(const Product& product, std::int64_t size) {
  const std::int64_t down = tiles_along(product.out.rows, size);
  return product.symmetric ? down * (down + 1) / 2 : down * tiles_along(product.out.cols, size);
}

template <class T>
void mirror_elements(T* matrix, std::int64_t size, const Tile& tile) {
  for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
    for (std::int64_t col = std::max(tile.col, row + 1); col < tile.col + tile.cols; ++col) {
      matrix[col * size + row] = matrix[row * size + col];
    }
  }
}

}  // namespace

std::int64_t tiles_of(const Product& product, std::int64_t size) {
  return product.count * tiles_a_matrix(product, size);
}

Tile tile_at(const Product& product, std::int64_t size, std::int64_t index) {
  const std::int64_t each = tiles_a_matrix(product, size);
  const std::int64_t across = tiles_along(product.out.cols, size);
  std::int64_t down = 0, right = index % each;
  // A symmetric product's row `down` of tiles begins at the diagonal.
  for (; right >= across; ++down) right -= product.symmetric ? across - down - 1 : across;
  Tile tile{index / each, down * size, right * size};
  tile.rows = std::min(size, product.out.rows - tile.row);
  tile.cols = std::min(size, product.out.cols - tile.col);
  return tile;
}

void mirror(const Product& product, const Tile& tile, Element element) {
  const std::int64_t size = product.out.rows, offset = tile.matrix * size * size;
  if (element == Element::fp32) {
    mirror_elements(static_cast<float*>(product.out.data) + offset, size, tile);
  } else {
    mirror_elements(static_cast<std::uint16_t*>(product.out.data) + offset, size, tile);
  }
}

}  // namespace ganymede::newton_schulz
