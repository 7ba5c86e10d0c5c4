#include "services/worker/model/softmax_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/worker/model/softmax_kernels.cpp"
#include <hwy/foreach_target.h>

#include "services/worker/model/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ganymede::worker::model::kernels::HWY_NAMESPACE {

/// Lanes from `left` on become `value`.
HWY_INLINE Vector fill_from(Vector v, std::size_t left, float value) {
  if (HWY_LIKELY(left >= lanes())) return v;
  return hn::IfThenElse(hn::FirstN(Tag(), left), v, constant(value));
}

template <class T>
float row_maximum(const T* x, std::size_t n) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  auto maximum = constant(lowest);
  for (std::size_t i = 0; i < n; i += lanes()) maximum = hn::Max(fill_from(load(x + i, n - i), n - i, lowest), maximum);
  return hn::GetLane(hn::MaxOfLanes(Tag(), maximum));
}

HWY_INLINE void clear(float* x, std::size_t begin, std::size_t end) {
  if (begin < end) std::memset(x + begin, 0, (end - begin) * sizeof(float));
}

SoftmaxRow Softmax(float* logits, std::size_t begin, std::size_t end, std::size_t n, float scale, float sink) {
  float* seen = logits + begin;
  const std::size_t count = end - begin;
  const float largest = row_maximum(seen, count) * scale;
  const float maximum = std::max(largest, sink);
  const auto factor = constant(scale);
  const auto shift = constant(maximum);
  auto total = hn::Zero(Tag());
  for (std::size_t i = 0; i < count; i += lanes()) {
    const std::size_t left = count - i;
    const auto power = exponential(hn::MulSub(load(seen + i, left), factor, shift));
    store(power, seen + i, left);
    total = hn::Add(total, fill_from(power, left, 0.0f));
  }
  clear(logits, 0, begin);
  clear(logits, end, n);
  return {maximum, sum(total) + std::exp(sink - maximum), largest};
}

void SoftmaxBackward(float* logits, float* grad, std::size_t begin, std::size_t end, std::size_t n, float scale,
                     float log_sum, float delta) {
  const auto factor = constant(scale);
  const auto shift = constant(log_sum);
  const auto mean = constant(delta);
  for (std::size_t i = begin; i < end; i += lanes()) {
    const std::size_t left = end - i;
    const auto probability = exponential(hn::MulSub(load(logits + i, left), factor, shift));
    const auto difference = hn::Sub(load(grad + i, left), mean);
    store(probability, logits + i, left);
    store(hn::Mul(hn::Mul(probability, difference), factor), grad + i, left);
  }
  clear(logits, 0, begin);
  clear(logits, end, n);
  clear(grad, 0, begin);
  clear(grad, end, n);
}

template <class T>
float log_sum_exp_as(const T* logits, std::size_t n) {
  const float maximum = row_maximum(logits, n);
  const auto shift = constant(maximum);
  auto total = hn::Zero(Tag());
  for (std::size_t i = 0; i < n; i += lanes()) {
    total = hn::Add(total, fill_from(exponential(hn::Sub(load(logits + i, n - i), shift)), n - i, 0.0f));
  }
  return maximum + std::log(sum(total));
}

template <class T>
void cross_entropy_gradient_as(T* logits, std::size_t n, float log_sum, std::int64_t target, float scale) {
  const auto shift = constant(log_sum);
  const auto factor = constant(scale);
  const auto at = static_cast<std::size_t>(target);
  const float target_logit = hn::GetLane(load(logits + at, 1));
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto probability = exponential(hn::Sub(load(logits + i, n - i), shift));
    store(hn::Mul(probability, factor), logits + i, n - i);
  }
  const auto probability = exponential(constant(target_logit - log_sum));
  store(hn::Mul(hn::Sub(probability, constant(1.0f)), factor), logits + at, 1);
}

float LogSumExp(const void* logits, std::size_t n, Element element) {
  return element == Element::fp32 ? log_sum_exp_as(static_cast<const float*>(logits), n)
                                  : log_sum_exp_as(static_cast<const Bf16*>(logits), n);
}

void CrossEntropyGradient(void* logits, std::size_t n, float log_sum, std::int64_t target, float scale,
                          Element element) {
  if (element == Element::fp32) {
    cross_entropy_gradient_as(static_cast<float*>(logits), n, log_sum, target, scale);
  } else {
    cross_entropy_gradient_as(static_cast<Bf16*>(logits), n, log_sum, target, scale);
  }
}

}  // namespace ganymede::worker::model::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::worker::model::kernels {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxBackward);
HWY_EXPORT(LogSumExp);
HWY_EXPORT(CrossEntropyGradient);

SoftmaxRow softmax(float* logits, std::size_t begin, std::size_t end, std::size_t n, float scale, float sink) {
  return HWY_DYNAMIC_DISPATCH(Softmax)(logits, begin, end, n, scale, sink);
}
void softmax_backward(float* logits, float* grad, std::size_t begin, std::size_t end, std::size_t n, float scale,
                      float log_sum, float delta) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBackward)(logits, grad, begin, end, n, scale, log_sum, delta);
}
float log_sum_exp(const void* logits, std::size_t n, Element element) {
  return HWY_DYNAMIC_DISPATCH(LogSumExp)(logits, n, element);
}
void cross_entropy_gradient(void* logits, std::size_t n, float log_sum, std::int64_t target, float scale,
                            Element element) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyGradient)(logits, n, log_sum, target, scale, element);
}
float element_at(const void* row, std::int64_t index, Element element) {
  if (element == Element::fp32) return static_cast<const float*>(row)[index];
  return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(row)[index]) << 16);
}

}  // namespace ganymede::worker::model::kernels
#endif
