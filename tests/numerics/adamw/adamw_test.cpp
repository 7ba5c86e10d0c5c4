#include <ATen/ATen.h>
#include <ATen/ops/_fused_adamw.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "services/optimizer/plugin.h"

namespace ganymede::optimizer {
namespace {

constexpr double lr = 3e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;

const GanymedeOptimizer& plugin() {
  static const Plugin loaded = load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so");
  return *loaded.table;
}

struct Parameters {
  std::vector<float> value, first, second;
};

GanymedeStep step_of(std::uint64_t number, double scale = 1) {
  return {sizeof(GanymedeStep), 0, number, lr, beta1, beta2, eps, decay, scale};
}

/// One update of elements from … to - 1, in place.
void update(Parameters& p, const std::vector<float>& gradient, const GanymedeStep& step, std::size_t from,
            std::size_t to, bool decayed = true) {
  Parameters before = p;
  const float* state[] = {before.first.data() + from, before.second.data() + from};
  float* new_state[] = {p.first.data() + from, p.second.data() + from};
  GanymedeChunk chunk = {sizeof(GanymedeChunk),
                         2,
                         to - from,
                         decayed ? 1 : 0,
                         0,
                         gradient.data() + from,
                         before.value.data() + from,
                         state,
                         p.value.data() + from,
                         new_state};
  ASSERT_EQ(plugin().update_chunk(&step, &chunk), 0);
}

/// Gradients over eight orders of magnitude, as layers have them.
std::vector<float> gradients(std::uint64_t step, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i++) {
    values[i] = static_cast<float>((uniform(step, 1, i) - 0.5) * std::pow(10.0, -8.0 * uniform(9, 2, i)));
  }
  return values;
}

Parameters start(std::size_t count) {
  Parameters p;
  for (std::size_t i = 0; i < count; i++) p.value.push_back(static_cast<float>(0.02 * normal(1, 0, i, 3)));
  p.first.assign(count, 0);
  p.second.assign(count, 0);
  return p;
}

/// Largest distance in units in the last place of the larger of an element's old and new value: a value that an update
/// takes close to zero has no more digits than those it came from.
double farthest(const std::vector<float>& ours, const at::Tensor& theirs, const std::vector<float>& old) {
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); i++) {
    float value = theirs.data_ptr<float>()[i];
    float scale = std::max(std::abs(value), std::abs(old[i]));
    double ulp = static_cast<double>(std::nextafter(scale, std::numeric_limits<float>::infinity())) - scale;
    most = std::max(most, std::abs(static_cast<double>(ours[i]) - value) / ulp);
  }
  return most;
}

/// Over 200 steps every element follows the recurrence computed in fp64. Tolerance: each step rounds the value once
/// (half an ulp of the value, 2^-24 relative) and its change by a handful of roundings (less than 8 · 2^-24 of a change
/// that is at most about lr); all of them may fall the same way.
TEST(AdamW, FollowsTheFp64RecurrenceFor200Steps) {
  constexpr std::size_t count = 1003;
  constexpr int steps = 200;
  Parameters p = start(count);
  std::vector<double> value(p.value.begin(), p.value.end()), first(count), second(count), largest(count);
  for (int s = 1; s <= steps; s++) {
    std::vector<float> gradient = gradients(s, count);
    update(p, gradient, step_of(s, 0.5), 0, count);
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
    EXPECT_NEAR(p.first[i], first[i], 1e-5 * std::sqrt(second[i])) << i;
    EXPECT_NEAR(p.second[i], second[i], 1e-5 * second[i]) << i;
  }
}

/// Every step starts from torch's own state, so that the distance is that of one update: at most two units in the last
/// place. On x86-64 the bits are the same; elsewhere torch's compiler may fuse other multiplications and additions,
/// each of which is worth half a unit.
TEST(AdamW, LiesWithinTwoUlpsOfTorchsFusedKernel) {
  constexpr std::size_t count = 4099;
  Parameters p = start(count);
  for (int s = 1; s <= 50; s++) {
    std::vector<float> gradient = gradients(s, count);
    auto tensor = [](std::vector<float>& from) { return at::from_blob(from.data(), {count}).clone(); };
    at::Tensor value = tensor(p.value), grad = tensor(gradient), first = tensor(p.first), second = tensor(p.second);
    at::Tensor step = at::full({}, static_cast<float>(s));
    at::_fused_adamw_({value}, {grad}, {first}, {second}, {}, {step}, lr, beta1, beta2, decay, eps, false, false);
    Parameters old = p;
    update(p, gradient, step_of(s), 0, count);
    ASSERT_LE(farthest(p.value, value, old.value), 2) << "value, step " << s;
    ASSERT_LE(farthest(p.first, first, old.first), 2) << "first moment, step " << s;
    ASSERT_LE(farthest(p.second, second, old.second), 2) << "second moment, step " << s;
    p.value.assign(value.data_ptr<float>(), value.data_ptr<float>() + count);
    p.first.assign(first.data_ptr<float>(), first.data_ptr<float>() + count);
    p.second.assign(second.data_ptr<float>(), second.data_ptr<float>() + count);
  }
}

TEST(AdamW, BitsDoNotDependOnHowARunIsCut) {
  constexpr std::size_t count = 1000;
  Parameters whole = start(count), pieces = start(count);
  for (int s = 1; s <= 5; s++) {
    std::vector<float> gradient = gradients(s, count);
    update(whole, gradient, step_of(s), 0, count);
    for (std::size_t from = 0, piece = 1; from < count; from += piece, piece = piece % 37 + 2) {
      update(pieces, gradient, step_of(s), from, std::min(count, from + piece));
    }
  }
  EXPECT_EQ(whole.value, pieces.value);
  EXPECT_EQ(whole.first, pieces.first);
  EXPECT_EQ(whole.second, pieces.second);
}

TEST(AdamW, UndecayedParameterWithoutGradientStaysWhereItIs) {
  Parameters p = start(100), before = p;
  update(p, std::vector<float>(100, 0.0f), step_of(1), 0, 100, false);
  EXPECT_EQ(p.value, before.value);
  update(p, std::vector<float>(100, 0.0f), step_of(2), 0, 100, true);
  for (std::size_t i = 0; i < 100; i++) {
    EXPECT_EQ(p.value[i], before.value[i] * static_cast<float>(1 - lr * decay));
  }
}

/// With a constant gradient both corrected moments equal it from the first step on, so every step moves by lr.
TEST(AdamW, ConstantGradientMovesByTheLearningRateFromTheFirstStep) {
  Parameters p = start(3), before = p;
  std::vector<float> gradient = {1e-3f, -1.0f, 100.0f};
  for (int s = 1; s <= 10; s++) update(p, gradient, step_of(s), 0, 3, false);
  for (int i = 0; i < 3; i++) {
    EXPECT_NEAR(p.value[i] - before.value[i], (gradient[i] > 0 ? -1 : 1) * 10 * lr, 1e-3 * lr);
  }
}

TEST(AdamW, RefusesACallerOfAnotherAbi) {
  GanymedeStep step = step_of(1);
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 1;
  EXPECT_NE(plugin().update_chunk(&step, &chunk), 0);
  chunk.slots = 2;
  step.size = 8;
  EXPECT_NE(plugin().update_chunk(&step, &chunk), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
