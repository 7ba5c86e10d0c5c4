#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "common/base/hash.h"
#include "tests/unit/engine/swap_world.h"

/// MuonClip in a world that trains: the logits that the workers find limit those of the steps that follow.
namespace ganymede::worker {
namespace {

using namespace std::chrono_literals;

std::function<void(config::Config&)> threshold(double value) {
  return [value](config::Config& config) {
    if (config.optimizer.name == "muonclip") config.optimizer.hyper["muonclip.threshold"] = value;
    config.optimizer.lr = 1e-4;
  };
}

double largest_logit(SwapWorld& world, std::uint64_t epoch) {
  auto logits = service::epoch_control(world.cell(0), epoch).reductions;
  return *std::max_element(logits.begin(), logits.end());
}

/// The largest logit of each step.
std::vector<double> largest_logits(double limit, int steps) {
  SwapWorld world({"muonclip"}, threshold(limit));
  std::vector<double> largest;
  for (int s = 1; s <= steps; ++s) {
    world.step();
    largest.push_back(largest_logit(world, 0));
    world.settle();
  }
  return largest;
}

TEST(MuonClip, LogitsAboveTheThresholdComeDownToIt) {
  constexpr int steps = 12;
  auto unlimited = largest_logits(100, steps);
  double limit = unlimited.front() / 4;
  auto limited = largest_logits(limit, steps);
  EXPECT_EQ(limited.front(), unlimited.front()) << "of the parameters before the first update";
  EXPECT_GT(unlimited.back(), 3 * limit);
  EXPECT_LT(limited.back(), 1.05 * limit);
  EXPECT_GT(limited.back(), 0.5 * limit);
}

constexpr std::uint64_t to_muonclip = 3, to_adamw = 10, warm_steps = 3, last = 16;

/// AdamW → MuonClip → AdamW. `disturb` is asked before each step, `look` after each.
std::vector<std::vector<float>> swapped(const std::function<void(SwapWorld&, std::uint64_t)>& disturb,
                                        const std::function<void(SwapWorld&)>& look = {}) {
  SwapWorld world({"adamw", "muonclip", "adamw"}, threshold(5e-3));
  std::uint64_t wanted = 0;
  while (world.decided() < last) {
    world.settle();
    std::uint64_t next = world.decided() + 1;
    if (next == to_muonclip && wanted == 0) world.swap_to(wanted = 1, warm_steps);
    if (next == to_adamw && wanted == 1) world.swap_to(wanted = 2, warm_steps);
    disturb(world, next);
    world.step();
    if (look) look(world);
  }
  world.settle();
  return world.values();
}

const std::vector<std::vector<float>>& undisturbed() {
  static const auto values = swapped([](SwapWorld&, std::uint64_t) {});
  return values;
}

/// Named in step 3, followed from step 4 on, in force from step 7 to 13.
TEST(MuonClip, ASwapToItHasLogitsFromTheFirstStepThatItFollows) {
  double most = 0;
  swapped([](SwapWorld&, std::uint64_t) {},
          [&](SwapWorld& world) {
            const auto& record = world.record();
            auto logits = service::epoch_control(world.cell(1), 1).reductions;
            bool follows = record.step > to_muonclip && record.step <= to_muonclip + warm_steps;
            bool applies = record.state_epoch == 1;
            EXPECT_EQ(record.swap_reductions_hash, follows ? hash64(std::as_bytes(logits)) : 0) << record.step;
            EXPECT_EQ(record.reductions_hash, applies ? hash64(std::as_bytes(logits)) : 0) << record.step;
            EXPECT_EQ(applies, record.step > to_muonclip + warm_steps && record.step <= to_adamw + warm_steps);
            if (follows || applies) most = std::max(most, largest_logit(world, 1));
          });
  EXPECT_GT(most, 5e-3) << "the threshold is in force";
}

TEST(MuonClip, WorkersKilledInAnyStepEndWithTheSameBits) {
  std::uint64_t killed = 0, asked = 0;
  auto values = swapped([&](SwapWorld& world, std::uint64_t step) {
    if (step == killed) return;
    killed = step;
    world.kill_workers_in(500us * (1 + 3 * (asked++ % 5)));
  });
  EXPECT_GE(asked, 10u);
  EXPECT_EQ(values, undisturbed());
}

TEST(MuonClip, ServersKilledInAnyStepEndWithTheSameBits) {
  auto values = swapped([&](SwapWorld& world, std::uint64_t step) {
    int rank = static_cast<int>(step % 2);
    bool second = step > to_muonclip && step <= to_adamw + warm_steps;
    if (second) world.restart_server(rank, 1);
    if (step <= to_muonclip + warm_steps) world.restart_server(1 - rank, 0);
  });
  EXPECT_EQ(values, undisturbed());
}

}  // namespace
}  // namespace ganymede::worker
