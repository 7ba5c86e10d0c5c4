#include "common/model_spec/model_spec.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/base/random.h"

namespace ganymede::model_spec {
namespace {

constexpr double lower_tail = 0.0013498980316300946;  // Φ(-3)

/// Inverse of the standard normal distribution function by Acklam's rational approximation: relative error below
/// 1.2e-9, which is finer than the fp32 that it is rounded to (`normal` of common/base refines it to fp64 at ten times
/// the cost, and a model has billions of values). `p` in [Φ(-3), Φ(3)].
double inverse_normal(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                          -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  constexpr double central = 0.02425;
  double tail = std::min(p, 1 - p);
  if (tail >= central) {
    double q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  double q = std::sqrt(-2 * std::log(tail));
  double magnitude = -(((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
                     ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  return p < 0.5 ? -magnitude : magnitude;
}

float truncated_normal(std::uint32_t bits, double deviation) {
  double uniform_cell = (static_cast<double>(bits) + 0.5) * 0x1p-32;
  return static_cast<float>(deviation * inverse_normal(lower_tail + uniform_cell * (1 - 2 * lower_tail)));
}

}  // namespace

void initial_values(const ParameterSpec& parameter, std::uint64_t seed, std::int64_t first, std::span<float> values) {
  if (parameter.init != InitKind::truncated_normal) {
    std::fill(values.begin(), values.end(), parameter.init == InitKind::ones ? 1.0f : 0.0f);
    return;
  }
  // Four elements share one draw of Philox.
  std::uint64_t stream = hash64(std::string_view(parameter.name));
  auto element = static_cast<std::uint64_t>(first);
  std::array<std::uint32_t, 4> draw = philox(seed, stream, element / 4);
  for (float& value : values) {
    value = truncated_normal(draw[element % 4], parameter.init_std);
    element++;
    if (element % 4 == 0) draw = philox(seed, stream, element / 4);
  }
}

float initial_value(const ParameterSpec& parameter, std::uint64_t seed, std::int64_t element) {
  float value = 0;
  initial_values(parameter, seed, element, {&value, 1});
  return value;
}

}  // namespace ganymede::model_spec
