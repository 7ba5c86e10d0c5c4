#pragma once

#include "common/placement/matrices.h"
#include "common/plan/builder.h"

/// The end of a step that updates whole matrices: between the two phases of the optimizer server (rule 14) the workers
/// bring the rows of each matrix together, orthogonalise it, and bring the rows back.
namespace ganymede::plan {

/// Appends these operations, bucket by bucket in forward order: the rows of the next bucket travel while one is
/// orthogonalised. `after`: the operation that decides the step, -1 when it is decided. Nothing where no optimizer
/// updates matrices.
void add_matrix_updates(Builder& builder, int after);

/// How many matrices of this shape are handed over to the optimizer server at once, of `count`; at least one.
std::int64_t batch_size(std::int64_t rows, std::int64_t columns, std::int64_t count);

constexpr std::int64_t most_batch_bytes = 8 << 20;

}  // namespace ganymede::plan
