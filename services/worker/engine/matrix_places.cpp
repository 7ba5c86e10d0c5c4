#include "services/worker/engine/matrix_places.h"

#include <algorithm>

namespace ganymede::worker {

using placement::Matrix;
using placement::MatrixPart;

std::map<int, Place> places_of(const placement::BucketMatrices& bucket, int member) {
  std::map<int, Place> places;
  std::int64_t at = 0;
  for (const placement::MatrixBatch& batch : placement::batches_of(bucket, member, false)) {
    std::int64_t values_at = at + batch.elements();
    for (int matrix : batch.matrices) {
      places[matrix] = {at, values_at};
      at += batch.rows * batch.columns;
      values_at += batch.rows * batch.row_slots;
    }
    at = values_at;
  }
  return places;
}

void copy_rows(RowsAt<const float> from, const Matrix& matrix, const MatrixPart& part, RowsAt<float> to) {
  std::copy_n(from.elements, matrix.elements(part), to.elements);
  std::copy_n(from.row_values, matrix.row_values(part), to.row_values);
}

const MatrixPart* part_of(const Matrix& matrix, int member) {
  auto found =
      std::find_if(matrix.parts.begin(), matrix.parts.end(), [&](auto& part) { return part.member == member; });
  return found == matrix.parts.end() ? nullptr : &*found;
}

}  // namespace ganymede::worker
