#pragma once

#include <cstdint>

#include "common/newton_schulz/products.h"

/// What happens to elements between products. One matrix at a time, one thread.
namespace ganymede::newton_schulz {

/// ‖in‖_F, summed in fp64 in one order, so that no finite fp32 matrix overflows it: not finite exactly if an element is
/// not.
double frobenius_norm(const float* in, std::int64_t elements);

/// out[i] = in[i] · scale, computed in fp64, rounded to fp32 and from there to `element` (to nearest, ties to even).
void load_scaled(const float* in, std::int64_t elements, double scale, Element element, void* out);

/// out[i] = in[i] as fp32; whether all of them are finite.
bool store(const void* in, std::int64_t elements, Element element, float* out);

/// out = scale · in + diagonal · I for one fp32 matrix [size, size]; `out` may be `in`.
void scale_and_shift(const float* in, std::int64_t size, float scale, float diagonal, float* out);

}  // namespace ganymede::newton_schulz
