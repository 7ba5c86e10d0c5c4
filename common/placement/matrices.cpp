#include "common/placement/matrices.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace ganymede::placement {
namespace {

double cost(const Matrix& matrix) {
  return static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns) *
         static_cast<double>(std::min(matrix.rows, matrix.columns));
}

std::vector<MatrixPart> parts_of(const Bucket& bucket, const PlacedParameter& placed, const Matrix& matrix) {
  std::vector<MatrixPart> parts;
  for (std::size_t member = 0; member + 1 < bucket.cut.size(); member++) {
    auto row = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at - placed.offset, 0, matrix.rows * matrix.columns) / matrix.columns;
    };
    std::int64_t from = row(bucket.cut[member]), to = row(bucket.cut[member + 1]);
    if (to > from) parts.push_back({static_cast<int>(member), from, to - from});
  }
  return parts;
}

std::vector<Matrix> matrices_in(const Placement& placement, const Bucket& bucket) {
  std::vector<Matrix> matrices;
  for (const PlacedParameter& placed : bucket.parameters) {
    const OptimizerFacts& optimizer = placement.update.optimizer_of(placed.parameter);
    if (!optimizer.matrices) continue;
    const model_spec::ParameterSpec& parameter = placement.parameters[static_cast<std::size_t>(placed.parameter)];
    Matrix matrix{placed.parameter, parameter.rows(), parameter.row_elements(), 0, {}};
    matrix.row_slots = static_cast<int>(optimizer.row_slots.size());
    if (optimizer.updates_matrix) matrix.updater = static_cast<int>(&optimizer - placement.update.optimizers.data());
    matrix.parts = parts_of(bucket, placed, matrix);
    matrix.owner = matrix.parts.front().member;
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

/// Elements that each member gets from (gives to) this one, as boundaries.
void lay_out_exchange(BucketMatrices& all, const Bucket& bucket) {
  std::size_t members = bucket.group.size();
  std::vector<std::int64_t> to(members, 0), from(members, 0);
  for (const Matrix& matrix : all.matrices) {
    for (const MatrixPart& part : matrix.parts) {
      if (part.member == matrix.owner) continue;
      std::int64_t elements = matrix.elements(part) + matrix.row_values(part);
      if (part.member == bucket.index_in_group) to[static_cast<std::size_t>(matrix.owner)] += elements;
      if (matrix.owner == bucket.index_in_group) from[static_cast<std::size_t>(part.member)] += elements;
    }
  }
  all.sent.assign(members + 1, 0);
  all.received.assign(members + 1, 0);
  for (std::size_t i = 0; i < members; i++) {
    all.sent[i + 1] = all.sent[i] + to[i];
    all.received[i + 1] = all.received[i] + from[i];
  }
}

}  // namespace

bool BucketMatrices::travels() const {
  return std::any_of(matrices.begin(), matrices.end(), [](const Matrix& matrix) { return matrix.parts.size() > 1; });
}

std::vector<MatrixBatch> batches_of(const BucketMatrices& bucket, int member, bool whole) {
  std::map<std::tuple<std::int64_t, std::int64_t, int>, MatrixBatch> by_shape;
  for (std::size_t i = 0; i < bucket.matrices.size(); i++) {
    const Matrix& matrix = bucket.matrices[i];
    if (matrix.owner != member || (matrix.parts.size() == 1) != whole) continue;
    MatrixBatch empty{matrix.rows, matrix.columns, {}, matrix.row_slots, matrix.updater};
    auto found = by_shape.try_emplace({matrix.rows, matrix.columns, matrix.updater}, std::move(empty)).first;
    found->second.matrices.push_back(static_cast<int>(i));
  }
  std::vector<MatrixBatch> batches;
  for (auto& [shape, batch] : by_shape) batches.push_back(std::move(batch));
  return batches;
}

std::vector<BucketMatrices> matrices_of(const Placement& placement) {
  std::vector<BucketMatrices> all(placement.buckets.size());
  // Buckets with the same group are a balance of their own: ranks know the cuts of their own buckets alone.
  std::map<std::vector<int>, std::vector<double>> loads;
  for (std::size_t i = 0; i < all.size(); i++) {
    const Bucket& bucket = placement.buckets[i];
    all[i].matrices = matrices_in(placement, bucket);
    std::vector<double>& load = loads[bucket.group];
    load.resize(bucket.group.size(), 0);
    for (const Matrix& matrix : all[i].matrices) {
      if (matrix.parts.size() == 1) load[static_cast<std::size_t>(matrix.owner)] += cost(matrix);
    }
  }
  for (std::size_t i = 0; i < all.size(); i++) {
    std::vector<double>& load = loads[placement.buckets[i].group];
    for (Matrix& matrix : all[i].matrices) {
      if (matrix.parts.size() == 1) continue;
      auto least = std::min_element(load.begin(), load.end());
      matrix.owner = static_cast<int>(least - load.begin());
      *least += cost(matrix);
    }
    lay_out_exchange(all[i], placement.buckets[i]);
  }
  return all;
}

}  // namespace ganymede::placement
