#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "common/newton_schulz/products.h"

/// Products in tiles of a fixed size, each computed by one thread: a matrix's bits then depend neither on the number of
/// threads nor on the batch.
namespace ganymede::newton_schulz {

/// [row, row + rows) × [col, col + cols) of `out` of the batch's matrix `matrix`.
struct Tile {
  std::int64_t matrix = 0, row = 0, col = 0, rows = 0, cols = 0;
};

/// How many tiles for_each_tile() has; of a symmetric product only those on and above the diagonal count.
std::int64_t tiles_of(const Product& product, std::int64_t size);
Tile tile_at(const Product& product, std::int64_t size, std::int64_t index);

/// Copies what of the tile lies above the diagonal of a symmetric product's `out` to where it belongs below.
void mirror(const Product& product, const Tile& tile, Element element);

/// Calls compute(tile) for square tiles of `size` that cover `out` (cut at its edges), through products.for_each(), and
/// mirrors them if the product is symmetric.
template <class Compute>
void for_each_tile(Products& products, const Product& product, std::int64_t size, const Compute& compute) {
  const auto one = [&](std::int64_t index) {
    const auto tile = tile_at(product, size, index);
    compute(tile);
    if (product.symmetric) mirror(product, tile, products.element());
  };
  products.for_each(tiles_of(product, size), std::cref(one));
}

/// The same, tile after tile on the calling thread.
template <class Compute>
void for_each_tile_alone(const Products& products, const Product& product, std::int64_t size, const Compute& compute) {
  for (std::int64_t index = 0; index < tiles_of(product, size); ++index) {
    const auto tile = tile_at(product, size, index);
    compute(tile);
    if (product.symmetric) mirror(product, tile, products.element());
  }
}

}  // namespace ganymede::newton_schulz
