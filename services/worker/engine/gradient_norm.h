#pragma once

#include <span>

#include "common/base/exact_sum.h"
#include "common/placement/placement.h"

namespace ganymede::worker {

/// Sum of squares in fp64, by a fixed pattern over the elements of a row: the same bits wherever the row lies.
double sum_of_squares(std::span<const float> row);

/// Adds the squares of this rank's gradients of one bucket, of those that its replica answers for. Rows of matrices are
/// whole on one rank and elements of a vector are rows of their own, and the sum over rows is exact: so the norm does
/// not depend on how the model is cut. `gradients`: the rank's whole gradient array. `by_parameter` [parameters], or
/// empty: the same of each parameter for itself, in fp64 in the order of its rows.
void add_squares(const placement::Placement& placement, int bucket, std::span<const float> gradients, ExactSum& sum,
                 std::span<double> by_parameter = {});

}  // namespace ganymede::worker
