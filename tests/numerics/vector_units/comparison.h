#pragma once

#include <string>
#include <vector>

#include "tests/numerics/vector_units/results.h"

namespace ganymede::vector_units {

/// Name and byte of the first difference; empty when there is none.
std::string first_difference(const std::vector<Result>& found, const std::vector<Result>& expected);

/// A failed expectation that says where they differ.
void expect_same(const std::vector<Result>& found, const std::vector<Result>& expected);

}  // namespace ganymede::vector_units
