#include "services/optimizer/plugins/lion/lion_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/lion/lion_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include "services/optimizer/plugins/elementwise-inl.h"

#ifndef GANYMEDE_LION_FACTORS
#define GANYMEDE_LION_FACTORS
namespace ganymede::lion {

/// What is equal for all elements of a step: computed in fp64 and rounded once.
struct Factors {
  float gradient_scale, decay, negative_lr, first_weight, second_weight;

  Factors(const GanymedeStep& step, bool decayed)
      : gradient_scale(static_cast<float>(step.gradient_scale)),
        decay(static_cast<float>(decayed ? 1 - step.lr * step.weight_decay : 1.0)),
        negative_lr(static_cast<float>(-step.lr)),
        first_weight(static_cast<float>(1 - step.hyper[0])),
        second_weight(static_cast<float>(1 - step.hyper[1])) {}
};

}  // namespace ganymede::lion
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::lion::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void update_lanes(D d, const Factors& factors, const GanymedeChunk& chunk, std::size_t at) {
  auto gradient = hn::Mul(hn::LoadU(d, chunk.gradient + at), hn::Set(d, factors.gradient_scale));
  auto momentum = hn::LoadU(d, chunk.state[0] + at);
  auto ahead = hn::Sub(gradient, momentum);
  auto direction = hn::MulAdd(hn::Set(d, factors.first_weight), ahead, momentum);
  auto sign = hn::CopySign(hn::Set(d, 1.0f), direction);
  sign = hn::IfThenElse(hn::Eq(direction, hn::Zero(d)), hn::Zero(d), sign);
  auto master = hn::Mul(hn::LoadU(d, chunk.master + at), hn::Set(d, factors.decay));
  hn::StoreU(hn::MulAdd(hn::Set(d, factors.negative_lr), sign, master), d, chunk.new_master + at);
  hn::StoreU(hn::MulAdd(hn::Set(d, factors.second_weight), ahead, momentum), d, chunk.new_state[0] + at);
}

void update_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  plugins::HWY_NAMESPACE::for_elements(chunk.count,
                                       [&](auto d, std::size_t at) HWY_ATTR { update_lanes(d, factors, chunk, at); });
}

}  // namespace ganymede::lion::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::lion {

HWY_EXPORT(update_chunk);

void update(const GanymedeStep& step, const GanymedeChunk& chunk) {
  HWY_DYNAMIC_DISPATCH(update_chunk)(Factors(step, chunk.decayed != 0), chunk);
}

}  // namespace ganymede::lion
#endif
