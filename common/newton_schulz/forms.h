#pragma once

#include <cstdint>

#include "common/newton_schulz/coefficients.h"
#include "common/newton_schulz/products.h"

/// The two ways to the same matrix, for X [n, m] with n ≤ m.
namespace ganymede::newton_schulz {

enum class Form {
  standard,   // each step: A = XXᵀ, B = bA + cA², X = aX + BX
  gram,       // works on G = XXᵀ [n, n] alone: P = aI + bG + cG², G = PGP, Q = PQ; after a few steps X = QX
  automatic,  // the one with fewer operations
};

/// Steps of the gram form between two multiplications of X. The rounding of G = XXᵀ is relative to the largest singular
/// value, and the steps amplify it for the smallest: the more steps, the less accurate.
constexpr int gram_steps = 2;

/// Floating-point operations (two for a multiplication and an addition) of the products of one matrix, all products
/// counted whole. Where c is 0 a step has no A²; a single row or column has no products. `form` is not automatic.
double operations(Form form, std::int64_t rows, std::int64_t cols, const Schedule& schedule);

/// What `automatic` means for these matrices: never `automatic`. bf16 has no gram form, because G in bf16 has lost the
/// small singular values: `automatic` is then the standard form. Throws a usage Error for bf16 with `gram` or with a
/// schedule that does not withstand it.
Form form_of(Form form, Element element, std::int64_t rows, std::int64_t cols, const Schedule& schedule);

}  // namespace ganymede::newton_schulz
