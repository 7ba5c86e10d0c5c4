#include "services/optimizer/plugins/sgd/sgd_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/sgd/sgd_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include "services/optimizer/plugins/elementwise-inl.h"

#ifndef GANYMEDE_SGD_FACTORS
#define GANYMEDE_SGD_FACTORS
namespace ganymede::sgd {

/// What is equal for all elements of a step: computed in fp64 and rounded once.
struct Factors {
  float gradient_scale, decay, negative_lr, momentum, weight;
  bool nesterov;

  Factors(const GanymedeStep& step, bool decayed)
      : gradient_scale(static_cast<float>(step.gradient_scale)),
        decay(static_cast<float>(decayed ? step.weight_decay : 0.0)),
        negative_lr(static_cast<float>(-step.lr)),
        momentum(static_cast<float>(step.hyper[0])),
        weight(static_cast<float>(step.step == 1 ? 1.0 : 1 - step.hyper[1])),  // the first gradient is the momentum
        nesterov(step.hyper[2] != 0) {}
};

}  // namespace ganymede::sgd
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::sgd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void update_lanes(D d, const Factors& factors, const GanymedeChunk& chunk, std::size_t at) {
  auto master = hn::LoadU(d, chunk.master + at);
  auto gradient = hn::Mul(hn::LoadU(d, chunk.gradient + at), hn::Set(d, factors.gradient_scale));
  gradient = hn::MulAdd(master, hn::Set(d, factors.decay), gradient);
  auto momentum = hn::Mul(hn::LoadU(d, chunk.state[0] + at), hn::Set(d, factors.momentum));
  momentum = hn::MulAdd(gradient, hn::Set(d, factors.weight), momentum);
  auto direction = factors.nesterov ? hn::MulAdd(momentum, hn::Set(d, factors.momentum), gradient) : momentum;
  hn::StoreU(hn::MulAdd(direction, hn::Set(d, factors.negative_lr), master), d, chunk.new_master + at);
  hn::StoreU(momentum, d, chunk.new_state[0] + at);
}

void update_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  plugins::HWY_NAMESPACE::for_elements(chunk.count,
                                       [&](auto d, std::size_t at) HWY_ATTR { update_lanes(d, factors, chunk, at); });
}

}  // namespace ganymede::sgd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::sgd {

HWY_EXPORT(update_chunk);

void update(const GanymedeStep& step, const GanymedeChunk& chunk) {
  HWY_DYNAMIC_DISPATCH(update_chunk)(Factors(step, chunk.decayed != 0), chunk);
}

}  // namespace ganymede::sgd
#endif
