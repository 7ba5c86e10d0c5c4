#include "common/step_protocol/step_statistics.h"

#include <algorithm>
#include <cmath>

namespace ganymede::step_protocol {
namespace {

constexpr double least_deviation = 1e-3;  // of the mean

void add(Moments& moments, double value, double weight) {
  double difference = value - moments.mean;
  moments.mean += weight * difference;
  moments.variance = (1 - weight) * (moments.variance + weight * difference * difference);
}

bool sound(const Moments& moments) {
  return std::isfinite(moments.mean) && std::isfinite(moments.variance) && moments.variance >= 0;
}

}  // namespace

StepStatistics with_step(StepStatistics statistics, double loss, double grad_norm, std::uint64_t window) {
  ++statistics.steps;
  double weight = std::max(1 / static_cast<double>(statistics.steps), 2 / (static_cast<double>(window) + 1));
  add(statistics.loss, loss, weight);
  add(statistics.grad_norm, grad_norm, weight);
  return sound(statistics) ? statistics : StepStatistics{};
}

bool has_enough(const StepStatistics& statistics, std::uint64_t window) { return statistics.steps >= (window + 1) / 2; }

double deviations_above(const Moments& moments, double value) {
  double above = value - moments.mean;
  double deviation = std::max(std::sqrt(moments.variance), least_deviation * std::fabs(moments.mean));
  return above > 0 && deviation > 0 ? above / deviation : 0;
}

bool sound(const StepStatistics& statistics) { return sound(statistics.loss) && sound(statistics.grad_norm); }

}  // namespace ganymede::step_protocol
