#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/step_protocol/worker_machine.h"

namespace ganymede::step_protocol {
namespace {

constexpr SwapPolicy offer{.state_epoch = 1, .warm_steps = 3};

/// Steps of two ranks that follow one another, with change `number` offered.
class Steps {
 public:
  /// The next step; `offers` and `refusals` by rank.
  struct Ballot {
    std::uint64_t offers[2] = {}, refused[2] = {};
    bool finite = true, idle = true;
  };
  const DecisionRecord& next(const Ballot& ballot) {
    std::vector<Vote> votes(2);
    for (int rank = 0; rank < 2; ++rank) {
      votes[rank].step = newest_.step + 1;
      votes[rank].loss_sum = 1;
      votes[rank].loss_tokens = 10;
      votes[rank].norm_squared.add(0.25);
      votes[rank].non_finite = ballot.finite ? 0 : 1;
      votes[rank].snapshot_idle = ballot.idle ? 1 : 0;
      votes[rank].previous_record = newest_.checksum;
      votes[rank].change_number = ballot.offers[rank];
      votes[rank].refused_change = ballot.refused[rank];
    }
    policy_.change_number = decided_change(votes, newest_, policy_.swap).change_number;
    DecisionRecord record = decide(votes, newest_, policy_);
    record.checksum = record.compute_checksum();
    newest_ = record;
    return newest_;
  }
  const DecisionRecord& offered(std::uint64_t number = 1) { return next({.offers = {number, number}}); }
  const DecisionRecord& newest() const { return newest_; }
  StepPolicy& policy() { return policy_; }

  Steps() {
    policy_.last_step = 100;
    policy_.swap = offer;
  }

 private:
  StepPolicy policy_;
  DecisionRecord newest_;
};

TEST(Swap, TakesOverAfterItsWarmSteps) {
  Steps steps;
  steps.next({});
  EXPECT_EQ(steps.offered().swap_change, 1u);
  EXPECT_EQ(steps.newest().swap_step, 2u);
  for (std::uint64_t step = 3; step <= 5; ++step) {
    EXPECT_EQ(steps.offered().swap_change, 1u) << step;
    EXPECT_EQ(steps.newest().state_epoch, 0u);
    EXPECT_EQ(steps.newest().change_number, 0u);
  }
  EXPECT_EQ(steps.offered().state_epoch, 1u);
  EXPECT_EQ(steps.newest().change_number, 1u);
  EXPECT_EQ(steps.newest().change_step, 6u);
  EXPECT_EQ(steps.newest().swap_change, 0u);
  EXPECT_EQ(steps.offered().state_epoch, 1u);
}

TEST(Swap, BeginsOnlyWhenAllRanksOfferIt) {
  Steps steps;
  EXPECT_EQ(steps.next({.offers = {1, 0}}).swap_change, 0u);
  EXPECT_EQ(steps.next({.offers = {0, 1}}).swap_change, 0u);
  EXPECT_EQ(steps.offered().swap_step, 3u);
}

TEST(Swap, WithoutWarmStepsTakesOverWithTheNextStep) {
  Steps steps;
  steps.policy().swap.warm_steps = 0;
  EXPECT_EQ(steps.offered().state_epoch, 0u);
  EXPECT_EQ(steps.offered().state_epoch, 1u);
}

TEST(Swap, SkippedStepsWarmNothingUp) {
  Steps steps;
  steps.offered();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(steps.next({.offers = {1, 1}, .finite = false}).apply, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(steps.offered().state_epoch, 0u);
  EXPECT_EQ(steps.offered().state_epoch, 1u);
  EXPECT_EQ(steps.newest().updates, 5u);
}

/// Whichever rank refuses in whichever of its steps: nothing is left of it, for as long as it is offered.
TEST(Swap, OfWhichOneRankSaysThatItCannotIsAsIfNobodyHadAsked) {
  for (int refuser : {0, 1}) {
    for (int after = 0; after <= 4; ++after) {
      Steps steps;
      for (int i = 0; i < after; ++i) steps.offered();
      Steps::Ballot ballot{.offers = {1, 1}};
      ballot.refused[refuser] = 1;
      EXPECT_EQ(steps.next(ballot).refused_change, 1u);
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(steps.newest().swap_change, 0u);
        EXPECT_EQ(steps.newest().swap_step, 0u);
        EXPECT_EQ(steps.newest().state_epoch, 0u);
        EXPECT_EQ(steps.newest().change_number, 0u);
        steps.offered();
      }
    }
  }
}

TEST(Swap, OnceTakenOverIsRefusedNoMore) {
  Steps steps;
  for (int i = 0; i < 5; ++i) steps.offered();
  ASSERT_EQ(steps.newest().state_epoch, 1u);
  EXPECT_EQ(steps.next({.offers = {1, 1}, .refused = {1, 1}}).state_epoch, 1u);
  EXPECT_EQ(steps.newest().refused_change, 0u);
}

TEST(Swap, AfterARefusalAChangeOfTheOldOptimizerIsFollowedAtOnce) {
  Steps steps;
  steps.offered();
  steps.next({.offers = {1, 1}, .refused = {0, 1}});
  steps.policy().swap = {};
  EXPECT_EQ(steps.next({.offers = {2, 2}, .refused = {0, 1}}).change_number, 2u);
  EXPECT_EQ(steps.newest().state_epoch, 0u);
  steps.policy().swap = {.state_epoch = 2, .warm_steps = 0};
  EXPECT_EQ(steps.next({.offers = {3, 3}, .refused = {0, 1}}).swap_change, 3u);
  EXPECT_EQ(steps.offered(3).state_epoch, 2u);
}

TEST(Swap, NoSnapshotIsUnderWayWhenAnotherOptimizerTakesOver) {
  Steps steps;
  steps.policy().snapshot_every = 1;
  EXPECT_EQ(steps.next({}).snapshot_after, 1u);
  for (std::uint64_t step = 2; step <= 4; ++step) EXPECT_EQ(steps.offered().snapshot_after, step % 2) << step;
  DecisionRecord before = steps.offered();
  EXPECT_EQ(before.snapshot_after, 0u) << "step 5 is the last one of the old optimizer";
  EXPECT_FALSE(may_vote(6, 5, false, before, steps.policy()));
  EXPECT_TRUE(may_vote(6, 5, true, before, steps.policy()));
  EXPECT_THROW(Steps(steps).next({.offers = {1, 1}, .idle = false}), Error);
  EXPECT_EQ(steps.offered().state_epoch, 1u);
  EXPECT_EQ(steps.newest().snapshot_after, 1u);
}

TEST(Swap, ServersOfBothEpochsKnowTheirPartFromTheRecordAlone) {
  Steps steps;
  auto parts = [&] {
    return std::pair(part_of(steps.newest(), 0, offer.state_epoch), part_of(steps.newest(), 1, offer.state_epoch));
  };
  steps.next({});
  EXPECT_EQ(parts(), std::pair(ServerPart::applies, ServerPart::none));
  steps.offered();
  EXPECT_EQ(parts(), std::pair(ServerPart::applies, ServerPart::adopt));
  for (int i = 0; i < 3; ++i) {
    steps.offered();
    EXPECT_EQ(parts(), std::pair(ServerPart::applies, ServerPart::follow));
  }
  steps.offered();
  EXPECT_EQ(parts(), std::pair(ServerPart::none, ServerPart::applies));
}

TEST(Decide, CountsTheUpdatesThatTheParametersHaveSeen) {
  Steps steps;
  steps.policy().loaded_updates = 40;
  EXPECT_EQ(steps.next({}).updates, 41u);
  EXPECT_EQ(steps.next({.finite = false}).updates, 41u);
  EXPECT_EQ(steps.next({}).updates, 42u);
}

}  // namespace
}  // namespace ganymede::step_protocol
