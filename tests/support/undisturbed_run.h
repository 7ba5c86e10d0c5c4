#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/training_run.h"

namespace ganymede::test {

/// A run of two ranks that nobody disturbs, and what other runs with its settings are held against.
class UndisturbedRun {
 public:
  UndisturbedRun(int steps, int checkpoint_every) : UndisturbedRun(settings(steps, checkpoint_every)) {}
  explicit UndisturbedRun(std::vector<std::string> settings) : settings_(std::move(settings)) {}

  double seconds = 90;  // that training it may take

  /// One thread a rank: two ranks share the two cores of a small machine.
  static std::vector<std::string> settings(int steps, int checkpoint_every) {
    return {"parallel.ranks=2", "run.steps=" + std::to_string(steps),
            "checkpoint.every_steps=" + std::to_string(checkpoint_every), "compute.threads=1"};
  }

  /// The same losses, each step once, and the same state, bit for bit.
  void expect_same(const TrainingRun& other) {
    if (!trained_) {
      EXPECT_EQ(run_.train({}, seconds), 0) << run_.output();
      trained_ = true;
    }
    EXPECT_EQ(other.losses(), run_.losses());
    EXPECT_EQ(other.state_hash(), run_.state_hash());
    auto lines = other.metrics();
    for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i]["step"], i + 1) << "each step is there once";
  }

 private:
  std::vector<std::string> settings_;
  TrainingRun run_{settings_};
  bool trained_ = false;
};

}  // namespace ganymede::test
