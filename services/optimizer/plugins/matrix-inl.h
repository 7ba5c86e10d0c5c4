// Part of a kernel of an optimizer of matrices that Highway compiles once for each kind of vector unit: include it
// after elementwise-inl.h. The guard is switched for every target.
#if defined(GANYMEDE_MATRIX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GANYMEDE_MATRIX_INL_H
#undef GANYMEDE_MATRIX_INL_H
#else
#define GANYMEDE_MATRIX_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "common/optimizer_abi/ganymede_optimizer.h"

HWY_BEFORE_NAMESPACE();
namespace ganymede::plugins::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// from + weight · (to − from), from the nearer end, as at::lerp.
template <class D, class V>
HWY_INLINE V lerp(D d, V from, V to, float weight, float rest) {
  auto way = hn::Sub(to, from);
  return weight < 0.5f ? hn::MulAdd(hn::Set(d, weight), way, from) : hn::NegMulAdd(hn::Set(d, rest), way, to);
}

/// The first phase of torch.optim.Muon: momentum = lerp(momentum, gradient, rest), and with Nesterov's momentum
/// lerp(gradient, momentum, decay) is orthogonalised, else the momentum. `rest` = 1 - decay. State slot 0: momentum.
template <class D>
HWY_INLINE void momentum_lanes(D d, float gradient_scale, float decay, float rest, bool nesterov,
                               const GanymedeChunk& chunk, std::size_t at) {
  auto gradient = hn::Mul(hn::LoadU(d, chunk.gradient + at), hn::Set(d, gradient_scale));
  auto momentum = lerp(d, hn::LoadU(d, chunk.state[0] + at), gradient, rest, decay);
  auto sent = nesterov ? lerp(d, gradient, momentum, decay, rest) : momentum;
  hn::StoreU(momentum, d, chunk.new_state[0] + at);
  hn::StoreU(sent, d, chunk.to_orthogonalise + at);
}

/// The second: master · kept + negative_step · orthogonal.
template <class D>
HWY_INLINE void step_lanes(D d, float kept, float negative_step, const GanymedeChunk& chunk, std::size_t at) {
  auto master = hn::Mul(hn::LoadU(d, chunk.master + at), hn::Set(d, kept));
  auto step = hn::LoadU(d, chunk.orthogonal + at);
  hn::StoreU(hn::MulAdd(hn::Set(d, negative_step), step, master), d, chunk.new_master + at);
}

}  // namespace ganymede::plugins::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
