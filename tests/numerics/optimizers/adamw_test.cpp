#include <ATen/ATen.h>
#include <ATen/ops/_fused_adamw.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/numerics/optimizers/runs.h"

namespace ganymede::optimizer {
namespace {

constexpr double lr = 3e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;

constexpr double hyper[] = {beta1, beta2, eps};

GanymedeStep step_of(std::uint64_t number, double scale = 1) {
  return {sizeof(GanymedeStep), 3, number, lr, decay, scale, hyper};
}

void update(Parameters& p, const std::vector<float>& gradient, const GanymedeStep& step, std::size_t count,
            bool decayed = true) {
  update(plugin("adamw"), p, gradient, step, 0, count, decayed);
}

/// Over 200 steps every element follows the recurrence computed in fp64. Tolerance: each step rounds the value once
/// (half an ulp of the value, 2^-24 relative) and its change by a handful of roundings (less than 8 · 2^-24 of a change
/// that is at most about lr); all of them may fall the same way.
TEST(AdamW, FollowsTheFp64RecurrenceFor200Steps) {
  constexpr std::size_t count = 1003;
  constexpr int steps = 200;
  Parameters p = start(count, 2);
  std::vector<double> value(p.value.begin(), p.value.end()), first(count), second(count), largest(count);
  for (int s = 1; s <= steps; s++) {
    std::vector<float> gradient = gradients(s, count);
    update(p, gradient, step_of(s, 0.5), count);
    for (std::size_t i = 0; i < count; i++) {
      double g = 0.5 * gradient[i];
      first[i] = beta1 * first[i] + (1 - beta1) * g;
      second[i] = beta2 * second[i] + (1 - beta2) * g * g;
      double root = std::sqrt(second[i] / (1 - std::pow(beta2, s)));
      value[i] = value[i] * (1 - lr * decay) - lr * (first[i] / (1 - std::pow(beta1, s))) / (root + eps);
      largest[i] = std::max(largest[i], std::abs(value[i]));
    }
  }
  for (std::size_t i = 0; i < count; i++) {
    double tolerance = steps * (2 * largest[i] + 8 * lr) * 0x1p-24;
    EXPECT_NEAR(p.value[i], value[i], tolerance) << i;
    EXPECT_NEAR(p.state[0][i], first[i], 1e-5 * std::sqrt(second[i])) << i;
    EXPECT_NEAR(p.state[1][i], second[i], 1e-5 * second[i]) << i;
  }
}

/// Every step starts from torch's own state, so that the distance is that of one update: at most two units in the last
/// place. On x86-64 the bits are the same; elsewhere torch's compiler may fuse other multiplications and additions,
/// each of which is worth half a unit.
TEST(AdamW, LiesWithinTwoUlpsOfTorchsFusedKernel) {
  constexpr std::size_t count = 4099;
  Parameters p = start(count, 2);
  for (int s = 1; s <= 200; s++) {
    std::vector<float> gradient = gradients(s, count);
    auto tensor = [](std::vector<float>& from) { return at::from_blob(from.data(), {count}).clone(); };
    at::Tensor value = tensor(p.value), grad = tensor(gradient), first = tensor(p.state[0]),
               second = tensor(p.state[1]);
    at::Tensor step = at::full({}, static_cast<float>(s));
    at::_fused_adamw_({value}, {grad}, {first}, {second}, {}, {step}, lr, beta1, beta2, decay, eps, false, false);
    Parameters old = p;
    update(p, gradient, step_of(s), count);
    ASSERT_LE(farthest(p.value, value.data_ptr<float>(), old.value), 2) << "value, step " << s;
    ASSERT_LE(farthest(p.state[0], first.data_ptr<float>(), old.state[0]), 2) << "first moment, step " << s;
    ASSERT_LE(farthest(p.state[1], second.data_ptr<float>(), old.state[1]), 2) << "second moment, step " << s;
    p.value.assign(value.data_ptr<float>(), value.data_ptr<float>() + count);
    p.state[0].assign(first.data_ptr<float>(), first.data_ptr<float>() + count);
    p.state[1].assign(second.data_ptr<float>(), second.data_ptr<float>() + count);
  }
}

TEST(AdamW, BitsDoNotDependOnHowARunIsCut) { expect_cuts_change_nothing(plugin("adamw"), step_of(1)); }

TEST(AdamW, UndecayedParameterWithoutGradientStaysWhereItIs) {
  Parameters p = start(100, 2), before = p;
  update(p, std::vector<float>(100, 0.0f), step_of(1), 100, false);
  EXPECT_EQ(p.value, before.value);
  update(p, std::vector<float>(100, 0.0f), step_of(2), 100, true);
  for (std::size_t i = 0; i < 100; i++) {
    EXPECT_EQ(p.value[i], before.value[i] * static_cast<float>(1 - lr * decay));
  }
}

/// With a constant gradient both corrected moments equal it from the first step on, so every step moves by lr.
TEST(AdamW, ConstantGradientMovesByTheLearningRateFromTheFirstStep) {
  Parameters p = start(3, 2), before = p;
  std::vector<float> gradient = {1e-3f, -1.0f, 100.0f};
  for (int s = 1; s <= 10; s++) update(p, gradient, step_of(s), 3, false);
  for (int i = 0; i < 3; i++) {
    EXPECT_NEAR(p.value[i] - before.value[i], (gradient[i] > 0 ? -1 : 1) * 10 * lr, 1e-3 * lr);
  }
}

/// The root of an infinite second moment is infinite, also after its correction: the step is zero, not NaN.
TEST(AdamW, ParameterWhoseSecondMomentOverflowsStaysWhereItIs) {
  Parameters p = start(35, 2), before = p;
  update(p, std::vector<float>(35, 1e25f), step_of(1), 35, false);
  EXPECT_EQ(p.value, before.value);
  EXPECT_TRUE(std::isinf(p.state[1][0]));
}

/// Factors are kept from call to call: each has to be of its own step.
TEST(AdamW, CallsOfDifferentStepsAndRulesDoNotDisturbOneAnother) {
  Parameters alone = start(64, 2), mixed = alone, other = alone;
  std::vector<float> gradient = gradients(1, 64);
  update(alone, gradient, step_of(5, 0.5), 64);
  update(other, gradient, step_of(4, 0.5), 64);
  update(other, gradient, step_of(5, 0.5), 64, false);
  update(other, gradient, step_of(5, 0.25), 64);
  update(mixed, gradient, step_of(5, 0.5), 64);
  EXPECT_EQ(mixed.value, alone.value);
  EXPECT_NE(other.value, alone.value);
}

TEST(AdamW, RefusesACallerOfAnotherAbi) {
  GanymedeStep step = step_of(1);
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 1;
  EXPECT_NE(plugin("adamw").update_chunk(&step, &chunk), 0);
  chunk.slots = 2;
  step.size = 8;
  EXPECT_NE(plugin("adamw").update_chunk(&step, &chunk), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
