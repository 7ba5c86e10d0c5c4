#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "services/optimizer/selection_bias.h"
#include "services/optimizer/team.h"

namespace ganymede::optimizer {
namespace {

TEST(SelectionBias, MovesTowardsTheMeanAndStopsAtIt) {
  std::vector<std::int64_t> counts = {10, 0, 5, 5};
  std::vector<float> bias = {0.5f, 0, 0.25f, -0.25f}, updated(4);
  update_selection_bias(counts, 0, 0.125, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(0.375f, 0.125f, 0.25f, -0.25f));
}

TEST(SelectionBias, ComparesWithAMeanThatIsNoInteger) {
  std::vector<std::int64_t> counts = {3, 3, 4};  // mean 3⅓
  std::vector<float> bias(3, 0), updated(3);
  update_selection_bias(counts, 0, 1, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(1, 1, -1));
}

TEST(SelectionBias, PartOfTheExpertsUsesTheMeanOfAll) {
  std::vector<std::int64_t> counts = {100, 0, 1, 99};
  std::vector<float> bias(2, 0), updated(2);
  update_selection_bias(counts, 2, 1, bias, updated);
  EXPECT_THAT(updated, testing::ElementsAre(1, -1));
}

TEST(Team, EveryPieceIsDoneOnceARound) {
  for (int threads : {1, 2, 4}) {
    Team team(threads);
    std::vector<int> rounds(team.pieces());
    for (int i = 0; i < 2000; i++) team.run([&](int piece) { rounds[piece]++; });
    EXPECT_THAT(rounds, testing::Each(2000)) << threads;
  }
}

TEST(Team, WakesAfterSleep) {
  Team team(3);
  std::vector<int> rounds(team.pieces());
  for (int i = 0; i < 3; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    team.run([&](int piece) { rounds[piece]++; });
  }
  EXPECT_THAT(rounds, testing::Each(3));
}

TEST(Team, AThreadBeginsWithTheSamePieceInEveryRound) {
  Team team(2);
  for (int round = 0; round < 100; round++) {
    std::atomic<int> begun{0}, of_caller{-1}, of_member{-1};
    std::thread::id caller = std::this_thread::get_id();
    team.run([&](int piece) {
      std::atomic<int>& first = std::this_thread::get_id() == caller ? of_caller : of_member;
      if (first.load() >= 0) return;
      first = piece;
      begun++;
      while (begun.load() < 2) std::this_thread::yield();  // so none takes what is the other's
    });
    EXPECT_EQ(of_caller.load(), 0);
    EXPECT_EQ(of_member.load(), team.pieces() / 2);
  }
}

TEST(Team, AThreadThatIsHeldUpHoldsUpOnePiece) {
  Team team(2);
  std::atomic<int> done{0};
  std::atomic<bool> held{false};
  team.run([&](int) {
    if (!held.exchange(true)) {  // the first piece takes as long as all the others
      while (done.load() != team.pieces() - 1) std::this_thread::yield();
    }
    done++;
  });
  EXPECT_EQ(done.load(), team.pieces());
}

}  // namespace
}  // namespace ganymede::optimizer
