#include "common/placement/cutting.h"

#include <algorithm>

namespace ganymede::placement {
namespace {

/// The row boundary of the bucket's parameters that is nearest to flat element `target`; the lower one of two equals.
std::int64_t nearest_row(const Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                         std::int64_t target) {
  auto next = std::upper_bound(bucket.parameters.begin(), bucket.parameters.end(), target,
                               [](std::int64_t at, const PlacedParameter& placed) { return at < placed.offset; });
  const PlacedParameter& placed = *std::prev(next);
  const model_spec::ParameterSpec& parameter = parameters[placed.parameter];
  std::int64_t row = parameter.row_elements();
  std::int64_t index = std::min((target - placed.offset) / row, parameter.rows());
  std::int64_t below = placed.offset + index * row;
  std::int64_t above = next == bucket.parameters.end() ? bucket.elements : next->offset;
  if (index < parameter.rows()) above = below + row;
  return target - below <= above - target ? below : above;
}

}  // namespace

std::vector<std::int64_t> cut_at_rows(const Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                                      int members) {
  std::vector<std::int64_t> cut(members + 1, 0);
  for (int i = 1; i < members; i++) cut[i] = nearest_row(bucket, parameters, bucket.elements * i / members);
  cut[members] = bucket.elements;
  return cut;
}

std::vector<std::int64_t> cut_at_experts(const Bucket& bucket, int experts, int members, int turn) {
  auto matrices = static_cast<int>(bucket.parameters.size()) / experts;
  std::vector<std::int64_t> cut(members + 1, bucket.elements);
  for (int i = 0; i <= members; i++) {
    int expert = (i * experts + turn % members) / members;
    if (expert < experts) cut[i] = bucket.parameters[expert * matrices].offset;
  }
  return cut;
}

}  // namespace ganymede::placement
