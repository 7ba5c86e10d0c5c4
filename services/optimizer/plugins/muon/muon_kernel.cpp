#include "services/optimizer/plugins/muon/muon_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/optimizer/plugins/muon/muon_kernel.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each kind of vector unit

#include "services/optimizer/plugins/elementwise-inl.h"
#include "services/optimizer/plugins/matrix-inl.h"

#ifndef GANYMEDE_MUON_FACTORS
#define GANYMEDE_MUON_FACTORS
namespace ganymede::muon {

/// What is equal for all elements of a matrix in a step: computed in fp64 and rounded once, as torch.optim.Muon does.
struct Factors {
  float gradient_scale = 1, decay = 1, momentum = 0, rest = 0, negative_step_size = 0;
  bool nesterov = true;

  Factors(const GanymedeStep& step, const GanymedeChunk& chunk) {
    gradient_scale = static_cast<float>(step.gradient_scale);
    decay = static_cast<float>(chunk.decayed != 0 ? 1 - step.lr * step.weight_decay : 1.0);
    momentum = static_cast<float>(step.hyper[0]);
    rest = static_cast<float>(1 - step.hyper[0]);
    nesterov = step.hyper[1] != 0;
    const auto rows = static_cast<double>(chunk.rows), columns = static_cast<double>(chunk.columns);
    const double scale =
        step.hyper[2] == 0 ? std::sqrt(std::max(1.0, rows / columns)) : 0.2 * std::sqrt(std::max(rows, columns));
    negative_step_size = static_cast<float>(-step.lr * scale);
  }
};

}  // namespace ganymede::muon
#endif

HWY_BEFORE_NAMESPACE();
namespace ganymede::muon::HWY_NAMESPACE {

void update_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  plugins::HWY_NAMESPACE::for_elements(chunk.count, [&](auto d, std::size_t at) HWY_ATTR {
    plugins::HWY_NAMESPACE::momentum_lanes(d, factors.gradient_scale, factors.momentum, factors.rest, factors.nesterov,
                                           chunk, at);
  });
}

void apply_chunk(const Factors& factors, const GanymedeChunk& chunk) {
  plugins::HWY_NAMESPACE::for_elements(chunk.count, [&](auto d, std::size_t at) HWY_ATTR {
    plugins::HWY_NAMESPACE::step_lanes(d, factors.decay, factors.negative_step_size, chunk, at);
  });
}

}  // namespace ganymede::muon::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::muon {

HWY_EXPORT(update_chunk);
HWY_EXPORT(apply_chunk);

void update(const GanymedeStep& step, const GanymedeChunk& chunk) {
  HWY_DYNAMIC_DISPATCH(update_chunk)(Factors(step, chunk), chunk);
}

void apply(const GanymedeStep& step, const GanymedeChunk& chunk) {
  HWY_DYNAMIC_DISPATCH(apply_chunk)(Factors(step, chunk), chunk);
}

}  // namespace ganymede::muon
#endif
