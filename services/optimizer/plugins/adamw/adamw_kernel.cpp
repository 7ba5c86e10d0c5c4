#include "services/optimizer/plugins/adamw/adamw_kernel.h"

#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/adamw/adamw_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include "services/optimizer/plugins/elementwise-inl.h"

#ifndef GANYMEDE_ADAMW_FACTORS
#define GANYMEDE_ADAMW_FACTORS
namespace ganymede::adamw {

/// What is equal for all elements of a step: computed in fp64 and rounded once, as torch.optim does.
struct Factors {
  float gradient_scale = 1, decay = 1;
  float first_weight = 0, beta2 = 0, second_weight = 0;
  float correction2_root = 0, eps = 0, negative_step_size = 0;

  Factors(const GanymedeStep& step, bool decayed) {
    const double b1 = step.hyper[0], b2 = step.hyper[1], number = static_cast<double>(step.step);
    gradient_scale = static_cast<float>(step.gradient_scale);
    decay = static_cast<float>(decayed ? 1 - step.lr * step.weight_decay : 1.0);
    first_weight = static_cast<float>(1 - b1);
    beta2 = static_cast<float>(b2);
    second_weight = static_cast<float>(1 - b2);
    correction2_root = static_cast<float>(std::sqrt(1 - std::pow(b2, number)));
    eps = static_cast<float>(step.hyper[2]);
    negative_step_size = static_cast<float>(-step.lr / (1 - std::pow(b1, number)));
  }
};

}  // namespace ganymede::adamw
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::adamw::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements at … at + Lanes(d) - 1. Order of operations and fused multiply-adds are those of torch's fused
/// AdamW, so that on x86-64 its bits are the same.
template <class D>
HWY_INLINE void update_lanes(D d, const Factors& factors, const GanymedeChunk& chunk, std::size_t at) {
  auto gradient = hn::Mul(hn::LoadU(d, chunk.gradient + at), hn::Set(d, factors.gradient_scale));
  auto first = hn::LoadU(d, chunk.state[0] + at);
  auto second = hn::LoadU(d, chunk.state[1] + at);
  first = hn::MulAdd(hn::Set(d, factors.first_weight), hn::Sub(gradient, first), first);
  second = hn::MulAdd(hn::Mul(hn::Set(d, factors.second_weight), gradient), gradient,
                      hn::Mul(second, hn::Set(d, factors.beta2)));
  auto denominator = hn::Add(hn::Div(hn::Sqrt(second), hn::Set(d, factors.correction2_root)), hn::Set(d, factors.eps));
  auto master = hn::Mul(hn::LoadU(d, chunk.master + at), hn::Set(d, factors.decay));
  master = hn::Add(master, hn::Div(hn::Mul(hn::Set(d, factors.negative_step_size), first), denominator));
  hn::StoreU(master, d, chunk.new_master + at);
  hn::StoreU(first, d, chunk.new_state[0] + at);
  hn::StoreU(second, d, chunk.new_state[1] + at);
}

void update_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  plugins::HWY_NAMESPACE::for_elements(chunk.count,
                                       [&](auto d, std::size_t at) HWY_ATTR { update_lanes(d, factors, chunk, at); });
}

}  // namespace ganymede::adamw::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::adamw {

HWY_EXPORT(update_chunk);

void update(const GanymedeStep& step, const GanymedeChunk& chunk) {
  HWY_DYNAMIC_DISPATCH(update_chunk)(Factors(step, chunk.decayed != 0), chunk);
}

}  // namespace ganymede::adamw
#endif
