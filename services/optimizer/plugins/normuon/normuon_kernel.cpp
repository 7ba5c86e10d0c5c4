#include "services/optimizer/plugins/normuon/normuon_kernel.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/normuon/normuon_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include "services/optimizer/plugins/elementwise-inl.h"
#include "services/optimizer/plugins/matrix-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ganymede::normuon::HWY_NAMESPACE {

void update_chunk(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const auto scale = static_cast<float>(step.gradient_scale), decay = static_cast<float>(step.hyper[0]),
             rest = static_cast<float>(1 - step.hyper[0]);
  const bool nesterov = step.hyper[1] != 0;
  plugins::HWY_NAMESPACE::for_elements(chunk.count, [&](auto d, std::size_t at) HWY_ATTR {
    plugins::HWY_NAMESPACE::momentum_lanes(d, scale, decay, rest, nesterov, chunk, at);
  });
}

void apply_chunk(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const auto kept = static_cast<float>(chunk.decayed != 0 ? 1 - step.lr * step.weight_decay : 1.0),
             negative_step = static_cast<float>(-step.lr);
  plugins::HWY_NAMESPACE::for_elements(chunk.count, [&](auto d, std::size_t at) HWY_ATTR {
    plugins::HWY_NAMESPACE::step_lanes(d, kept, negative_step, chunk, at);
  });
}

/// In fp64, where the square of an fp32 number is exact: eight sums side by side, so that no vector width shows.
double sum_of_squares(const float* row, std::size_t columns) {
  constexpr std::size_t sums = 8;
  std::array<double, sums> sum{};
  std::size_t at = 0;
  for (; at + sums <= columns; at += sums) {
    for (std::size_t i = 0; i < sums; i++)
      sum[i] += static_cast<double>(row[at + i]) * static_cast<double>(row[at + i]);
  }
  for (std::size_t i = 0; at < columns; at++, i++)
    sum[i] += static_cast<double>(row[at]) * static_cast<double>(row[at]);
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// In fp64 as well: of a matrix that is nearly nothing, fp32 could not hold the factor.
void scale_row(float* row, std::size_t columns, double factor) {
  for (std::size_t at = 0; at < columns; at++) row[at] = static_cast<float>(static_cast<double>(row[at]) * factor);
}

}  // namespace ganymede::normuon::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::normuon {

HWY_EXPORT(update_chunk);
HWY_EXPORT(apply_chunk);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(scale_row);

void update(const GanymedeStep& step, const GanymedeChunk& chunk) { HWY_DYNAMIC_DISPATCH(update_chunk)(step, chunk); }

void apply(const GanymedeStep& step, const GanymedeChunk& chunk) { HWY_DYNAMIC_DISPATCH(apply_chunk)(step, chunk); }

void normalise(const GanymedeStep& step, const GanymedeMatrix& matrix) {
  const double beta2 = step.hyper[2], eps = step.hyper[3];
  const auto columns = static_cast<double>(matrix.columns), elements = static_cast<double>(matrix.rows) * columns;
  std::vector<double> inverse(matrix.rows);
  double squares = 0;  // of the divided matrix
  for (std::size_t row = 0; row < matrix.rows; row++) {
    double sum = HWY_DYNAMIC_DISPATCH(sum_of_squares)(matrix.orthogonal + row * matrix.columns, matrix.columns);
    double moment = beta2 * matrix.row_state[1][row] + (1 - beta2) * (sum / columns);
    matrix.new_row_state[1][row] = static_cast<float>(moment);
    inverse[row] = 1 / (std::sqrt(moment) + eps);
    squares += sum * inverse[row] * inverse[row];
  }
  // Newton–Schulz makes nothing of a zero matrix, and of a zero row nothing but zeros.
  const double scale = squares > 0 ? 0.2 * std::sqrt(elements) / std::sqrt(squares) : 0;
  for (std::size_t row = 0; row < matrix.rows; row++) {
    HWY_DYNAMIC_DISPATCH(scale_row)
    (matrix.orthogonal + row * matrix.columns, matrix.columns, scale * inverse[row]);
  }
}

}  // namespace ganymede::normuon
#endif
