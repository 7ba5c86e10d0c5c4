#include <ATen/ATen.h>
#include <ATen/ops/_fused_sgd.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/numerics/optimizers/runs.h"

namespace ganymede::optimizer {
namespace {

constexpr double lr = 1e-2, decay = 0.1;

struct Kind {
  const char* name;
  double momentum, dampening;
  bool nesterov;
};

class Sgd : public testing::TestWithParam<Kind> {
 protected:
  GanymedeStep step_of(std::uint64_t number) const { return {sizeof(GanymedeStep), 3, number, lr, decay, 1.0, hyper_}; }
  const double hyper_[3] = {GetParam().momentum, GetParam().dampening, GetParam().nesterov ? 1.0 : 0.0};
};

at::Tensor tensor(const std::vector<float>& from) {
  return at::from_blob(const_cast<float*>(from.data()), {static_cast<std::int64_t>(from.size())}).clone();
}

/// Every step starts from torch's own state, so that the distance is that of one update: at most two units in the last
/// place, for additions that one of the two fuses and the other does not.
TEST_P(Sgd, LiesWithinTwoUlpsOfTorchsFusedKernelFor200Steps) {
  constexpr std::size_t count = 4099;
  Parameters p = start(count, 1);
  for (std::uint64_t s = 1; s <= 200; s++) {
    std::vector<float> gradient = gradients(s, count);
    at::Tensor value = tensor(p.value), grad = tensor(gradient), momentum = tensor(p.state[0]);
    std::vector<at::Tensor> buffers;
    if (GetParam().momentum != 0) buffers.push_back(momentum);
    at::_fused_sgd_({value}, {grad}, buffers, decay, GetParam().momentum, lr, GetParam().dampening, GetParam().nesterov,
                    false, s == 1);
    Parameters old = p;
    update(plugin("sgd"), p, gradient, step_of(s), 0, count);
    ASSERT_LE(farthest(p.value, value.data_ptr<float>(), old.value), 2) << "value, step " << s;
    p.value.assign(value.data_ptr<float>(), value.data_ptr<float>() + count);
    if (GetParam().momentum == 0) continue;  // torch keeps none
    ASSERT_LE(farthest(p.state[0], momentum.data_ptr<float>(), old.state[0]), 2) << "momentum, step " << s;
    p.state[0].assign(momentum.data_ptr<float>(), momentum.data_ptr<float>() + count);
  }
}

/// Tolerance: each step rounds the value once and its change by a few roundings, which may all fall the same way.
TEST_P(Sgd, FollowsTheFp64RecurrenceFor200Steps) {
  constexpr std::size_t count = 1003;
  Parameters p = start(count, 1);
  std::vector<double> value(p.value.begin(), p.value.end()), momentum(count), moved(count);
  const auto& [name, mu, dampening, nesterov] = GetParam();
  for (std::uint64_t s = 1; s <= 200; s++) {
    std::vector<float> gradient = gradients(s, count);
    update(plugin("sgd"), p, gradient, step_of(s), 0, count);
    for (std::size_t i = 0; i < count; i++) {
      double g = gradient[i] + decay * value[i];
      momentum[i] = mu * momentum[i] + (s == 1 ? 1 : 1 - dampening) * g;
      double direction = nesterov ? g + mu * momentum[i] : momentum[i];
      value[i] -= lr * direction;
      moved[i] += std::abs(value[i]) + 4 / (1 - mu) * std::abs(lr * direction);
    }
  }
  for (std::size_t i = 0; i < count; i++) EXPECT_NEAR(p.value[i], value[i], moved[i] * 0x1p-23 + 1e-12) << name << i;
}

TEST_P(Sgd, BitsDoNotDependOnHowARunIsCut) { expect_cuts_change_nothing(plugin("sgd"), step_of(1)); }

TEST_P(Sgd, UndecayedParameterWithoutGradientStaysWhereItIs) {
  Parameters p = start(100, 1), before = p;
  update(plugin("sgd"), p, std::vector<float>(100, 0.0f), step_of(1), 0, 100, false);
  EXPECT_EQ(p.value, before.value);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Sgd,
                         testing::Values(Kind{"plain", 0, 0, false}, Kind{"momentum", 0.9, 0, false},
                                         Kind{"dampened", 0.9, 0.5, false}, Kind{"nesterov", 0.9, 0, true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SgdPlugin, RefusesACallerOfAnotherAbi) {
  const double hyper[3] = {0.9, 0, 0};
  GanymedeStep step = {sizeof(GanymedeStep), 3, 1, lr, decay, 1.0, hyper};
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 2;
  EXPECT_NE(plugin("sgd").update_chunk(&step, &chunk), 0);
  chunk.slots = 1;
  step.hyper_count = 2;
  EXPECT_NE(plugin("sgd").update_chunk(&step, &chunk), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
