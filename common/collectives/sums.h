#pragma once

#include <cstddef>
#include <span>

#include "common/collectives/collectives.h"

namespace ganymede::collectives {

constexpr std::size_t element_bytes(Element element) { return element == Element::fp32 ? 4 : 2; }

/// sum[i] = terms[0][i] + terms[1][i] + …, in that order, in fp32; `count` elements, at least one term. Terms need no
/// alignment. `sum` may be one of the terms if they are fp32. Bits do not depend on how an array is cut. Thread-safe.
void sum_in_order(Element element, std::span<const std::byte* const> terms, std::size_t count, float* sum);

}  // namespace ganymede::collectives
