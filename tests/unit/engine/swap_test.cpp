#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/unit/engine/swap_world.h"

/// AdamW → Muon → AdamW while two ranks train: their workers go over to each epoch, whoever is killed.
namespace ganymede::worker {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t to_muon = 4, muon_steps = 3, to_adamw = 12, adamw_steps = 20, last = 40;

struct Outcome {
  std::vector<std::vector<float>> values;
  std::vector<std::uint64_t> taken_over;  // first step of each new epoch
  double largest_first = 0;               // |update| / learning rate, in those
};

double largest_move(const std::vector<float>& before, const std::vector<float>& after, double lr) {
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(after[i]) - static_cast<double>(before[i])));
  return largest / lr;
}

/// `disturb` is asked before each step.
Outcome trained(const std::function<void(SwapWorld&, std::uint64_t)>& disturb) {
  SwapWorld world;
  Outcome outcome;
  std::uint64_t epoch = 0, wanted = 0;
  while (world.decided() < last) {
    world.settle();
    std::uint64_t step = world.decided();
    if (step + 1 == to_muon && wanted == 0) world.swap_to(wanted = 1, muon_steps);
    if (step + 1 == to_adamw && wanted == 1) world.swap_to(wanted = 2, adamw_steps);
    std::array<std::vector<float>, SwapWorld::ranks> before;
    for (int rank = 0; rank < SwapWorld::ranks; ++rank) before[rank] = world.master(rank);
    disturb(world, step + 1);
    world.step();
    if (world.record().state_epoch == epoch) continue;
    epoch = world.record().state_epoch;
    outcome.taken_over.push_back(world.decided());
    world.settle();
    for (int rank = 0; rank < SwapWorld::ranks; ++rank)
      outcome.largest_first =
          std::max(outcome.largest_first, largest_move(before[rank], world.master(rank), world.record().lr));
  }
  world.settle();
  outcome.values = world.values();
  return outcome;
}

const Outcome& undisturbed() {
  static const Outcome outcome = trained([](SwapWorld&, std::uint64_t) {});
  return outcome;
}

TEST(Swap, TakesOverAfterItsWarmUpWithSmallFirstSteps) {
  // Named by the first step that offers it, followed for the steps of the warm-up, in force with the one after them.
  EXPECT_EQ(undisturbed().taken_over,
            (std::vector<std::uint64_t>{to_muon + muon_steps + 1, to_adamw + adamw_steps + 1}));
  EXPECT_LE(undisturbed().largest_first, 3);
  EXPECT_GT(undisturbed().largest_first, 0);
}

TEST(Swap, WorkersKilledInAnyOfItsStepsEndWithTheSameBits) {
  std::uint64_t killed = 0, asked = 0;
  Outcome outcome = trained([&](SwapWorld& world, std::uint64_t step) {
    bool near =
        (step >= to_muon && step <= to_muon + muon_steps + 2) || step == to_adamw || step >= to_adamw + adamw_steps;
    if (!near || step == killed) return;
    killed = step;
    world.kill_workers_in(500us * (1 + 3 * (asked++ % 5)));
  });
  EXPECT_GT(asked, 8u);
  EXPECT_EQ(outcome.taken_over, undisturbed().taken_over);
  EXPECT_EQ(outcome.values, undisturbed().values);
}

TEST(Swap, ServersKilledInAnyOfItsStepsEndWithTheSameBits) {
  Outcome outcome = trained([&](SwapWorld& world, std::uint64_t step) {
    int rank = static_cast<int>(step % 2);
    if (step >= to_muon && step <= to_muon + muon_steps + 1) world.restart_server(rank, 1);
    if (step == to_muon + 1 || step == to_muon + muon_steps) world.restart_server(1 - rank, 0);
    if (step == to_adamw + 1 || step >= to_adamw + adamw_steps) world.restart_server(rank, 2);
  });
  EXPECT_EQ(outcome.values, undisturbed().values);
}

}  // namespace
}  // namespace ganymede::worker
