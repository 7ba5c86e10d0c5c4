#include "tests/numerics/vector_units/arm/chosen_unit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/numerics/vector_units/arm/chosen_unit.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ganymede::vector_units::HWY_NAMESPACE {

std::size_t lanes() { return hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>()); }

}  // namespace ganymede::vector_units::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::vector_units {
namespace {

std::int64_t chosen = 0;

}  // namespace

HWY_EXPORT(lanes);

std::size_t lanes_of_chosen_unit() { return HWY_DYNAMIC_DISPATCH(lanes)(); }

bool choose_unit(const std::string& name) {
  chosen = 0;
  for (std::int64_t targets = HWY_TARGETS; targets != 0; targets &= targets - 1) {
    if (name == hwy::TargetName(targets & -targets)) chosen = targets & -targets;
  }
  return chosen != 0;
}

}  // namespace ganymede::vector_units

/// What Highway's library asks the processor for, so that the library of the other family is not needed to link.
namespace hwy {

std::int64_t SupportedTargets() { return ganymede::vector_units::chosen; }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget target;
  return target;
}

}  // namespace hwy
#endif
