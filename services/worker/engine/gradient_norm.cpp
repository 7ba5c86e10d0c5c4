#include "services/worker/engine/gradient_norm.h"

#include <array>

namespace ganymede::worker {

double sum_of_squares(std::span<const float> row) {
  std::array<double, 8> part{};  // eight sums side by side, so that the additions need not wait for one another
  std::size_t whole = row.size() / part.size() * part.size();
  for (std::size_t i = 0; i < whole; i += part.size()) {
    for (std::size_t j = 0; j < part.size(); ++j) {
      double value = row[i + j];
      part[j] += value * value;
    }
  }
  for (std::size_t i = whole; i < row.size(); ++i) {
    double value = row[i];
    part[i - whole] += value * value;
  }
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

void add_squares(const placement::Placement& placement, int bucket, std::span<const float> gradients, ExactSum& sum,
                 std::span<double> by_parameter) {
  for (const placement::OwnedRange& range : placement.owned) {
    if (range.bucket != bucket || range.replica != placement.replica) continue;
    const model_spec::ParameterSpec& parameter = placement.parameters[range.parameter];
    if (parameter.update == model_spec::UpdateKind::selection_bias) continue;
    auto length = static_cast<std::size_t>(parameter.row_elements());
    auto values =
        gradients.subspan(static_cast<std::size_t>(range.shard_offset), static_cast<std::size_t>(range.count));
    for (std::size_t i = 0; i < values.size(); i += length) {
      double square = sum_of_squares(values.subspan(i, length));
      sum.add(square);
      if (!by_parameter.empty()) by_parameter[static_cast<std::size_t>(range.parameter)] += square;
    }
  }
}

}  // namespace ganymede::worker
