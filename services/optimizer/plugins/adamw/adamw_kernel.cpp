#include "services/optimizer/plugins/adamw/adamw_kernel.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/adamw/adamw_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include <hwy/highway.h>

#ifndef GANYMEDE_ADAMW_FACTORS
#define GANYMEDE_ADAMW_FACTORS
namespace ganymede::adamw {

/// What is equal for all elements of a step: computed in fp64 and rounded once, as torch.optim does.
struct Factors {
  float gradient_scale, decay;
  float first_weight, beta2, second_weight;
  float correction2_root, eps, negative_step_size;
};

}  // namespace ganymede::adamw
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::adamw::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// value / divisor, correctly rounded: a quotient to within a unit in the last place, its exact remainder, and one more
/// rounding (Markstein 1990; with `inverse` the correctly rounded 1 / divisor, as Brisebarre, Muller and Raina 2004,
/// algorithm 1). An infinity has no remainder and stays one. Faster than the CPU's division, of which there is one
/// more. Where multiply-adds round twice the remainder is not exact: there it is the division.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V divided(D d, V value, V divisor, V inverse) {
  if constexpr (HWY_NATIVE_FMA == 0) return hn::Div(value, divisor);
  auto quotient = hn::Mul(value, inverse);
  auto corrected = hn::MulAdd(hn::NegMulAdd(quotient, divisor, value), inverse, quotient);
  return hn::IfThenElse(hn::Lt(quotient, hn::Set(d, std::numeric_limits<float>::infinity())), corrected, quotient);
}

/// Whole vectors of the elements from `at` on; returns the first element behind them. Order of operations and fused
/// multiply-adds are those of torch's fused AdamW, so that on x86-64 its bits are the same.
template <class D>
HWY_INLINE std::size_t update_vectors(D d, const Factors& factors, const GanymedeChunk& chunk, std::size_t at) {
  const auto gradient_scale = hn::Set(d, factors.gradient_scale), decay = hn::Set(d, factors.decay);
  const auto first_weight = hn::Set(d, factors.first_weight), second_weight = hn::Set(d, factors.second_weight);
  const auto beta2 = hn::Set(d, factors.beta2), eps = hn::Set(d, factors.eps);
  const auto root = hn::Set(d, factors.correction2_root), inverse_root = hn::Set(d, 1.0f / factors.correction2_root);
  const auto negative_step_size = hn::Set(d, factors.negative_step_size);
  const float *gradients = chunk.gradient, *masters = chunk.master, *firsts = chunk.state[0], *seconds = chunk.state[1];
  float *new_masters = chunk.new_master, *new_firsts = chunk.new_state[0], *new_seconds = chunk.new_state[1];
  const std::size_t lanes = hn::Lanes(d), count = chunk.count;
  for (; at + lanes <= count; at += lanes) {
    auto gradient = hn::Mul(hn::LoadU(d, gradients + at), gradient_scale);
    auto first = hn::LoadU(d, firsts + at);
    auto second = hn::LoadU(d, seconds + at);
    first = hn::MulAdd(first_weight, hn::Sub(gradient, first), first);
    second = hn::MulAdd(hn::Mul(second_weight, gradient), gradient, hn::Mul(second, beta2));
    auto denominator = hn::Add(divided(d, hn::Sqrt(second), root, inverse_root), eps);
    auto master = hn::Mul(hn::LoadU(d, masters + at), decay);
    master = hn::Add(master, hn::Div(hn::Mul(negative_step_size, first), denominator));
    hn::StoreU(master, d, new_masters + at);
    hn::StoreU(first, d, new_firsts + at);
    hn::StoreU(second, d, new_seconds + at);
  }
  return at;
}

/// Whole vectors, then the rest one by one: bits depend neither on the vector's width nor on how a run is cut.
void update_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  std::size_t at = update_vectors(hn::ScalableTag<float>(), factors, chunk, 0);
  update_vectors(hn::CappedTag<float, 1>(), factors, chunk, at);
}

}  // namespace ganymede::adamw::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::adamw {

HWY_EXPORT(update_chunk);

namespace {

/// All that factors depend on.
struct Settings {
  double step, lr, weight_decay, gradient_scale, beta1, beta2, eps, decayed;
};

Factors compute(const Settings& s) {
  return {.gradient_scale = static_cast<float>(s.gradient_scale),
          .decay = static_cast<float>(s.decayed != 0 ? 1 - s.lr * s.weight_decay : 1.0),
          .first_weight = static_cast<float>(1 - s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .second_weight = static_cast<float>(1 - s.beta2),
          .correction2_root = static_cast<float>(std::sqrt(1 - std::pow(s.beta2, s.step))),
          .eps = static_cast<float>(s.eps),
          .negative_step_size = static_cast<float>(-s.lr / (1 - std::pow(s.beta1, s.step)))};
}

/// Two powers take as long as a hundred elements: computed once a step and thread, not once a call.
const Factors& factors_of(const Settings& settings) {
  thread_local Settings known{};  // no step is 0
  thread_local Factors factors{};
  if (std::memcmp(&known, &settings, sizeof(known)) != 0) {
    factors = compute(settings);
    known = settings;
  }
  return factors;
}

}  // namespace

void update(const GanymedeStep& step, const GanymedeChunk& chunk) {
  Settings settings{static_cast<double>(step.step),
                    step.lr,
                    step.weight_decay,
                    step.gradient_scale,
                    step.hyper[0],
                    step.hyper[1],
                    step.hyper[2],
                    chunk.decayed != 0 ? 1.0 : 0.0};
  HWY_DYNAMIC_DISPATCH(update_chunk)(factors_of(settings), chunk);
}

}  // namespace ganymede::adamw
#endif
