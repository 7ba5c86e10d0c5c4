#include <gtest/gtest.h>

#include <cmath>

#include "tests/numerics/optimizers/runs.h"

namespace ganymede::optimizer {
namespace {

constexpr double lr = 1e-3, decay = 0.5, beta1 = 0.9, beta2 = 0.99;
constexpr double hyper[] = {beta1, beta2};

GanymedeStep step_of(std::uint64_t number, double scale = 1) {
  return {sizeof(GanymedeStep), 2, number, lr, decay, scale, hyper};
}

/// The paper's formula (Chen et al., 2023, algorithm 2) in fp64, from this plugin's state before each step: a sign may
/// differ only where fp32 cannot tell the direction from zero.
TEST(Lion, FollowsTheFp64FormulaFor200Steps) {
  constexpr std::size_t count = 1003;
  Parameters p = start(count, 1);
  for (std::uint64_t s = 1; s <= 200; s++) {
    std::vector<float> gradient = gradients(s, count);
    Parameters old = p;
    update(plugin("lion"), p, gradient, step_of(s, 0.5), 0, count);
    for (std::size_t i = 0; i < count; i++) {
      double g = 0.5 * gradient[i], m = old.state[0][i];
      double direction = beta1 * m + (1 - beta1) * g;
      double kept = old.value[i] * (1 - lr * decay);
      ASSERT_NEAR(p.state[0][i], beta2 * m + (1 - beta2) * g, (std::abs(m) + std::abs(g)) * 0x1p-22) << s << " " << i;
      double rounding = (std::abs(kept) + lr) * 0x1p-22;
      if (std::abs(direction) > (std::abs(m) + std::abs(g)) * 0x1p-22) {
        ASSERT_NEAR(p.value[i], kept - std::copysign(lr, direction), rounding) << s << " " << i;
      } else {
        ASSERT_LE(std::abs(p.value[i] - kept), lr + rounding) << s << " " << i;
      }
    }
  }
}

TEST(Lion, BitsDoNotDependOnHowARunIsCut) { expect_cuts_change_nothing(plugin("lion"), step_of(1)); }

TEST(Lion, WithoutGradientOnlyTheDecayMovesAParameter) {
  Parameters p = start(100, 1), before = p;
  update(plugin("lion"), p, std::vector<float>(100, 0.0f), step_of(1), 0, 100, false);
  EXPECT_EQ(p.value, before.value);  // the sign of zero is zero
  update(plugin("lion"), p, std::vector<float>(100, 0.0f), step_of(2), 0, 100, true);
  for (std::size_t i = 0; i < 100; i++) {
    EXPECT_EQ(p.value[i], before.value[i] * static_cast<float>(1 - lr * decay));
  }
}

TEST(Lion, RefusesACallerOfAnotherAbi) {
  GanymedeStep step = step_of(1);
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 2;
  EXPECT_NE(plugin("lion").update_chunk(&step, &chunk), 0);
  chunk.slots = 1;
  step.size = 8;
  EXPECT_NE(plugin("lion").update_chunk(&step, &chunk), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
