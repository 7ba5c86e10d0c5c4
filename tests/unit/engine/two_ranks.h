#pragma once

#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "services/worker/engine/job/membership.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {

/// Two cells that hold the state after `steps` steps, with communicators of a new generation.
struct TwoRanks {
  explicit TwoRanks(int steps, const std::vector<placement::OptimizerFacts>& facts = builtin_facts())
      : world(config(), facts) {
    world.losses(steps);
    for (int rank = 0; rank < 2; ++rank) {
      world.cell(rank).control().block->state_ready = 1;
      communicators[rank] = std::make_unique<Communicators>(
          world.cell(rank).config(), world.cell(rank).placement(), 20,
          [&](const collectives::Group& group) { return make_thread_communicator(group, post); });
    }
  }
  static config::Config config() {
    config::Config made = tiny_config();
    made.parallel.ranks = 2;
    return made;
  }
  /// The exchange on both ranks, and where both begin.
  Beginning exchange_both() {
    std::array<std::exception_ptr, 2> faults;
    std::array<Beginning, 2> next{};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          next[rank] = exchange(world.cell(rank), *communicators[rank], 2, Deadline::after_seconds(10));
        } catch (...) {
          faults[rank] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& fault : faults)
      if (fault) std::rethrow_exception(fault);
    EXPECT_EQ(next[0].step, next[1].step);
    EXPECT_EQ(next[0].update_pending, next[1].update_pending);
    return next[0];
  }
  TestWorld world;
  std::shared_ptr<ThreadPost> post = std::make_shared<ThreadPost>();
  std::array<std::unique_ptr<Communicators>, 2> communicators;
};

}  // namespace ganymede::worker
