#pragma once

#include "common/newton_schulz/products.h"
#include "common/newton_schulz/tiles.h"

/// Products of bf16 matrices by the processor's own dot products of bf16 pairs.
namespace ganymede::newton_schulz::bf16 {

/// product.out on all threads of `products`, and on the calling one: the same bits, for they depend on no tiles. Of a
/// symmetric product only what lies on and above the diagonal is computed, in blocks of 16 × 16. In scratch that each
/// thread keeps: 2 MiB at most. Only where available().
void multiply(Products& products, const Product& product);
void multiply_alone(const Product& product);

/// One tile, whose row and column are multiples of 16, and of a symmetric product what lies opposite.
void multiply_tile(const Product& product, const Tile& tile);

}  // namespace ganymede::newton_schulz::bf16
