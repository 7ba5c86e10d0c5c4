#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"

/// Logical matrices that are updated whole, and how their rows come together and go back.
namespace ganymede::placement {

/// Rows of a matrix that one member of its bucket's group holds.
struct MatrixPart {
  int member = 0;  // index in Bucket::group
  std::int64_t first_row = 0, rows = 0;
};

struct Matrix {
  int parameter = 0;
  std::int64_t rows = 0, columns = 0;
  int owner = 0;                  // member that orthogonalises it
  std::vector<MatrixPart> parts;  // by rows; one: the owner holds it whole, and nothing travels
  int row_slots = 0;              // state slots with a value a row: they travel with the rows
  int updater = -1;               // optimizer (UpdateGroups::optimizers) whose update_matrix it goes through; -1: none

  std::int64_t elements(const MatrixPart& part) const { return part.rows * columns; }
  std::int64_t row_values(const MatrixPart& part) const { return part.rows * row_slots; }
};

/// The matrices of one bucket, in flat order, and their exchange between the ranks that share it: a pure function of
/// the placement, alike on all of them. Offsets are elements of flat buffers, one more than there are members: what
/// goes to (comes from) member i lies at [offset[i], offset[i + 1]), matrix by matrix, only rows that lie elsewhere
/// than with their owner: [rows][columns], then the values of per-row slots, [rows][slots per row]. What went there
/// comes back the same way.
struct BucketMatrices {
  std::vector<Matrix> matrices;
  std::vector<std::int64_t> sent, received;
  bool travels() const;  // whether any member of the group sends anything
};

/// Equal matrices of one updater, by index in BucketMatrices::matrices.
struct MatrixBatch {
  std::int64_t rows = 0, columns = 0;
  std::vector<int> matrices;
  int row_slots = 0, updater = -1;  // as in Matrix
  std::int64_t elements() const { return rows * columns * static_cast<std::int64_t>(matrices.size()); }
  std::int64_t row_values() const { return rows * row_slots * static_cast<std::int64_t>(matrices.size()); }
};

/// What a member orthogonalises of a bucket: of the matrices that it holds whole, or of those whose rows come from
/// several. Batches by shape.
std::vector<MatrixBatch> batches_of(const BucketMatrices& bucket, int member, bool whole);

/// Of every bucket, for the rank of the placement; none where no optimizer of matrices updates anything. A matrix that
/// several ranks hold belongs to the one with least work so far, all buckets in order (rows · columns · the smaller of
/// them, the cost of Newton–Schulz); what matrices lie whole on a rank counts first.
std::vector<BucketMatrices> matrices_of(const Placement& placement);

}  // namespace ganymede::placement
