#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/placement/matrices.h"

/// Where rows of matrices, and the values of their per-row slots, lie while a matrix is put together and taken apart.
namespace ganymede::worker {

/// Of one part of a matrix. A view; whoever makes it keeps the memory.
template <class Value>
struct RowsAt {
  Value* elements = nullptr;    // [rows][columns]
  Value* row_values = nullptr;  // [rows][slots per row]
};

/// As they travel: the values lie behind the elements.
template <class Value>
RowsAt<Value> travelling_at(Value* at, const placement::Matrix& matrix, const placement::MatrixPart& part) {
  return {at, at + matrix.elements(part)};
}

/// A matrix in the buffer of those whose rows come from several members: batch after batch, the elements of all its
/// matrices before the values of their per-row slots.
struct Place {
  std::int64_t elements = 0, row_values = 0;
};

/// By index in BucketMatrices::matrices, of those that this member orthogonalises.
std::map<int, Place> places_of(const placement::BucketMatrices& bucket, int member);

template <class Value>
RowsAt<Value> whole_at(Value* buffer, const Place& place, const placement::Matrix& matrix,
                       const placement::MatrixPart& part) {
  return {buffer + place.elements + part.first_row * matrix.columns,
          buffer + place.row_values + part.first_row * matrix.row_slots};
}

void copy_rows(RowsAt<const float> from, const placement::Matrix& matrix, const placement::MatrixPart& part,
               RowsAt<float> to);

/// What the member holds of the matrix; nullptr: nothing.
const placement::MatrixPart* part_of(const placement::Matrix& matrix, int member);

/// Calls visit(index, matrix, part, offset in the buffer) for each part of what travels to (`there`) or from other
/// members, in the order in which it lies in the buffers of the exchange.
template <class Visit>
void for_travelling(const placement::BucketMatrices& bucket, int own, bool there, const Visit& visit) {
  const std::vector<std::int64_t>& boundaries = there ? bucket.sent : bucket.received;
  std::vector<std::int64_t> next(boundaries.begin(), boundaries.end());
  for (std::size_t i = 0; i < bucket.matrices.size(); ++i) {
    const placement::Matrix& matrix = bucket.matrices[i];
    for (const placement::MatrixPart& part : matrix.parts) {
      bool mine = there ? part.member == own : matrix.owner == own;
      if (part.member == matrix.owner || !mine) continue;
      std::int64_t& at = next[static_cast<std::size_t>(there ? matrix.owner : part.member)];
      visit(static_cast<int>(i), matrix, part, at);
      at += matrix.elements(part) + matrix.row_values(part);
    }
  }
}

}  // namespace ganymede::worker
