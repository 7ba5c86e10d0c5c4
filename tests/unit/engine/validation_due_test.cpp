#include "services/worker/engine/job/validation_due.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace ganymede::worker {
namespace {

std::vector<std::uint64_t> due_steps(int every, int steps) {
  config::Config config;
  config.validation.every_steps = every;
  config.run.steps = steps;
  std::vector<std::uint64_t> due;
  for (int step = 1; step <= steps; ++step) {
    if (validation_due(config, static_cast<std::uint64_t>(step))) due.push_back(static_cast<std::uint64_t>(step));
  }
  return due;
}

/// A function of the step and the configuration alone: a step that a stop ends is like any other.
TEST(ValidationDue, EveryStepsAndAtTheEndOfTheRun) {
  EXPECT_EQ(due_steps(3, 8), (std::vector<std::uint64_t>{3, 6, 8}));
  EXPECT_EQ(due_steps(3, 6), (std::vector<std::uint64_t>{3, 6}));
  EXPECT_EQ(due_steps(100, 4), (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(due_steps(0, 8), (std::vector<std::uint64_t>{}));
}

}  // namespace
}  // namespace ganymede::worker
