#include "common/placement/cutting.h"

#include <algorithm>
#include <numeric>

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

/// Where the matrix with this number begins; the end of the bucket for the one behind the last.
std::int64_t begin_of(const Bucket& bucket, std::size_t matrix) {
  return matrix < bucket.parameters.size() ? bucket.parameters[matrix].offset : bucket.elements;
}

}  // namespace

std::vector<std::int64_t> level_shares(std::span<const std::int64_t> loads, std::int64_t amount) {
  std::vector<std::int64_t> sorted(loads.begin(), loads.end());
  std::sort(sorted.begin(), sorted.end());
  std::int64_t level = 0, filled = amount;  // the level that `amount` fills the lowest members to
  for (std::size_t lowest = 1; lowest <= sorted.size(); lowest++) {
    filled += sorted[lowest - 1];
    level = filled / static_cast<std::int64_t>(lowest);
    if (lowest < sorted.size() && level <= sorted[lowest]) break;
  }
  std::vector<std::int64_t> shares;
  for (std::int64_t load : loads) shares.push_back(std::max<std::int64_t>(level - load, 0));
  return shares;
}

std::vector<std::int64_t> cut_at_rows(const Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                                      FlatRange range, std::span<const std::int64_t> loads) {
  std::vector<std::int64_t> shares = level_shares(loads, range.end - range.begin), cut(1, range.begin);
  std::int64_t target = range.begin;
  for (std::size_t i = 0; i + 1 < shares.size(); i++) {
    target = std::min(target + shares[i], range.end);
    cut.push_back(std::clamp(nearest_row(bucket, parameters, target), cut.back(), range.end));
  }
  cut.push_back(range.end);
  return cut;
}

std::vector<std::int64_t> cut_at_matrices(const Bucket& bucket, std::span<const std::int64_t> loads) {
  std::size_t members = loads.size();
  std::vector<std::size_t> by_load(members), matrices(members, bucket.parameters.size() / members);
  std::iota(by_load.begin(), by_load.end(), std::size_t{0});
  std::stable_sort(by_load.begin(), by_load.end(), [&](std::size_t a, std::size_t b) { return loads[a] < loads[b]; });
  for (std::size_t i = 0; i < bucket.parameters.size() % members; i++) matrices[by_load[i]]++;
  std::vector<std::int64_t> cut(1, 0);
  std::size_t before = 0;
  for (std::size_t count : matrices) cut.push_back(begin_of(bucket, before += count));
  return cut;
}

std::vector<std::int64_t> cut_at_experts(const Bucket& bucket, int experts, int members) {
  std::size_t a_member =
      bucket.parameters.size() / static_cast<std::size_t>(experts) * static_cast<std::size_t>(experts / members);
  std::vector<std::int64_t> cut(1, 0);
  for (int i = 1; i <= members; i++) cut.push_back(begin_of(bucket, a_member * static_cast<std::size_t>(i)));
  return cut;
}

}  // namespace ganymede::placement
