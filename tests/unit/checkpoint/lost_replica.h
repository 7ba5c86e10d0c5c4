#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/verify.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

namespace ganymede::checkpoint {

/// Two replicas of two ranks; the second one is lost.
struct LostReplica {
  static constexpr std::uint64_t step = 9;
  test::TemporaryFolder folder;
  TestWorld world{test_config(4, 1, 2), folder.path()};

  LostReplica() {
    for (auto& cell : world.cells) {
      cell->fill(step);
      cell->decide({.step = step});
      commit(cell->rank(), step);
    }
    for (std::size_t rank : {2, 3}) world.services[rank].reset();
  }
  void start(const Reached& reached) {
    for (std::size_t rank : {0, 1}) world.start_one(rank, folder.path(), reached);
  }
  step_protocol::ControlBlock& control(std::size_t rank) { return *world.cells[rank]->control().block; }
  void commit(int rank, std::uint64_t committed) {
    TestCell& cell = *world.cells[static_cast<std::size_t>(rank)];
    auto words = service::epoch_control_of(cell.segment("state.0")).words;
    words->chunks_done = committed * cell.placement().chunks.size();
  }
  void order(std::uint64_t asked = step) {
    for (std::size_t rank : {0, 1}) {
      control(rank).rescue_replicas = 0b10;
      control(rank).rescue_step = asked;
    }
  }
  void serve() {
    for (std::size_t rank : {1, 0, 0}) world.services[rank]->serve();
  }
  void expect_whole() {
    EXPECT_EQ(world.launcher.failure, "");
    EXPECT_EQ(world.launcher.committed_step, step);
    CheckpointView view = open_checkpoint(folder.path(), step);
    Verification result = verify(view, [](std::uint64_t, std::uint64_t) {});
    EXPECT_THAT(result.damage, testing::IsEmpty());
    EXPECT_EQ(result.parts, 4);
    TestWorld other(test_config(3, 1), folder.path());
    other.load(step);
    for (auto& cell : other.cells) EXPECT_EQ(cell->wrong_elements(step), 0) << "rank " << cell->rank();
  }
};

}  // namespace ganymede::checkpoint
