#include <cmath>
#include <cstdint>

#include "tests/numerics/vector_units/results.h"

namespace ganymede::vector_units {
namespace {

/// a · b + c.
template <bool fused>
float multiply_add(float a, float b, float c) {
  if (fused) return std::fma(a, b, c);
  float product = a * b;
  return product + c;
}

float decay_factor(const GanymedeStep& step, const GanymedeChunk& chunk) {
  return static_cast<float>(chunk.decayed != 0 ? 1 - step.lr * step.weight_decay : 1.0);
}

template <bool fused>
void adamw(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const double beta1 = step.hyper[0], beta2 = step.hyper[1], number = static_cast<double>(step.step);
  const auto scale = static_cast<float>(step.gradient_scale), eps = static_cast<float>(step.hyper[2]);
  const auto first_weight = static_cast<float>(1 - beta1), second_weight = static_cast<float>(1 - beta2);
  const auto root = static_cast<float>(std::sqrt(1 - std::pow(beta2, number)));
  const auto negative_step_size = static_cast<float>(-step.lr / (1 - std::pow(beta1, number)));
  for (std::uint64_t i = 0; i < chunk.count; i++) {
    float gradient = chunk.gradient[i] * scale, first = chunk.state[0][i], second = chunk.state[1][i];
    first = multiply_add<fused>(first_weight, gradient - first, first);
    second = multiply_add<fused>(second_weight * gradient, gradient, second * static_cast<float>(beta2));
    float denominator = std::sqrt(second) / root + eps;
    float master = chunk.master[i] * decay_factor(step, chunk);
    chunk.new_master[i] = master + negative_step_size * first / denominator;
    chunk.new_state[0][i] = first;
    chunk.new_state[1][i] = second;
  }
}

template <bool fused>
void lion(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const auto scale = static_cast<float>(step.gradient_scale), negative_lr = static_cast<float>(-step.lr);
  const auto first_weight = static_cast<float>(1 - step.hyper[0]), weight = static_cast<float>(1 - step.hyper[1]);
  for (std::uint64_t i = 0; i < chunk.count; i++) {
    float momentum = chunk.state[0][i], ahead = chunk.gradient[i] * scale - momentum;
    float direction = multiply_add<fused>(first_weight, ahead, momentum);
    float sign = direction == 0 ? 0 : std::copysign(1.0f, direction);
    float master = chunk.master[i] * decay_factor(step, chunk);
    chunk.new_master[i] = multiply_add<fused>(negative_lr, sign, master);
    chunk.new_state[0][i] = multiply_add<fused>(weight, ahead, momentum);
  }
}

template <bool fused>
void sgd(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const auto scale = static_cast<float>(step.gradient_scale), negative_lr = static_cast<float>(-step.lr);
  const auto decay = static_cast<float>(chunk.decayed != 0 ? step.weight_decay : 0.0);
  const auto factor = static_cast<float>(step.hyper[0]);
  const auto weight = static_cast<float>(step.step == 1 ? 1.0 : 1 - step.hyper[1]);
  for (std::uint64_t i = 0; i < chunk.count; i++) {
    float gradient = multiply_add<fused>(chunk.master[i], decay, chunk.gradient[i] * scale);
    float momentum = multiply_add<fused>(gradient, weight, chunk.state[0][i] * factor);
    float direction = step.hyper[2] != 0 ? multiply_add<fused>(momentum, factor, gradient) : momentum;
    chunk.new_master[i] = multiply_add<fused>(direction, negative_lr, chunk.master[i]);
    chunk.new_state[0][i] = momentum;
  }
}

}  // namespace

Optimizers scalar_reference(bool fused) {
  return fused ? Optimizers{adamw<true>, lion<true>, sgd<true>} : Optimizers{adamw<false>, lion<false>, sgd<false>};
}

}  // namespace ganymede::vector_units
