#pragma once

#include <hwy/targets.h>

#include <cstdint>

namespace ganymede {

/// Restricts Highway to one vector unit of this processor for the life of the object: `target` is one bit of
/// hwy::SupportedTargets(). Holds for code in loaded libraries too. For one thread.
struct OnlyVectorUnit {
  explicit OnlyVectorUnit(std::int64_t target) { choose(target); }
  ~OnlyVectorUnit() { choose(0); }
  OnlyVectorUnit(const OnlyVectorUnit&) = delete;
  OnlyVectorUnit& operator=(const OnlyVectorUnit&) = delete;

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace ganymede
