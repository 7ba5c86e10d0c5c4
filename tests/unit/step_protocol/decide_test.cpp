#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "common/step_protocol/worker_machine.h"

namespace ganymede::step_protocol {
namespace {

StepPolicy policy() {
  StepPolicy result;
  result.lr = 1e-3;
  result.clip_norm = 1;
  result.last_step = 100;
  result.optimizer_hash = 7;
  return result;
}

Vote vote(std::uint64_t step, double loss = 2, double norm_squared = 0.25) {
  Vote result;
  result.generation = 3;
  result.step = step;
  result.loss_sum = loss;
  result.loss_tokens = 10;
  result.norm_squared.add(norm_squared);
  return result;
}

DecisionRecord record_of(std::uint64_t step) {
  DecisionRecord record;
  record.step = step;
  record.checksum = record.compute_checksum();
  return record;
}

std::vector<Vote> votes_after(const DecisionRecord& previous, int ranks) {
  std::vector<Vote> votes(ranks, vote(previous.step + 1));
  for (Vote& each : votes) each.previous_record = previous.checksum;
  return votes;
}

TEST(Decide, SumsLossInRankOrderAndNormExactly) {
  std::vector<Vote> votes = {vote(1, 1e16, 9), vote(1, 1, 16), vote(1, -1e16, 0)};
  DecisionRecord record = decide(votes, {}, policy());
  EXPECT_EQ(record.loss_sum, (1e16 + 1.0) - 1e16);
  EXPECT_EQ(record.grad_norm, 5);
  EXPECT_EQ(record.loss_tokens, 10u);
}

TEST(Decide, ClipsAsTorchDoes) {
  std::vector<Vote> votes = {vote(1, 2, 16)};
  EXPECT_EQ(decide(votes, {}, policy()).clip_factor, 1 / (4 + 1e-6));
  votes = {vote(1, 2, 0.25)};
  EXPECT_EQ(decide(votes, {}, policy()).clip_factor, 1);
  StepPolicy unclipped = policy();
  unclipped.clip_norm = 0;
  votes = {vote(1, 2, 1e6)};
  EXPECT_EQ(decide(votes, {}, unclipped).clip_factor, 1);
}

TEST(Decide, SkipsAStepThatIsNotFinite) {
  DecisionRecord previous = record_of(4);
  for (int which = 0; which < 3; ++which) {
    std::vector<Vote> votes = votes_after(previous, 2);
    if (which == 0) votes[1].non_finite = 1;
    if (which == 1) votes[1].norm_squared.add(std::numeric_limits<double>::infinity());
    if (which == 2) votes[1].loss_sum = std::nan("");
    DecisionRecord record = decide(votes, previous, policy());
    EXPECT_EQ(record.apply, 0u) << which;
    EXPECT_EQ(record.clip_factor, 1);
  }
  EXPECT_EQ(decide(votes_after(previous, 2), previous, policy()).apply, 1u);
}

TEST(Decide, StepWithoutLossTokensIsSkipped) {
  Vote empty = vote(1, 0, 0);
  empty.loss_tokens = 0;
  EXPECT_EQ(decide(std::vector{empty}, {}, policy()).apply, 0u);
}

TEST(Decide, StopRequestEndsTheRunWithASnapshot) {
  std::vector<Vote> votes = votes_after(record_of(4), 2);
  votes[1].stop_request = 1;
  DecisionRecord record = decide(votes, record_of(4), policy());
  EXPECT_EQ(record.stop_after, 1u);
  EXPECT_EQ(record.snapshot_after, 1u);
}

TEST(Decide, StopWaitsWhileASnapshotIsUnderWay) {
  DecisionRecord previous = record_of(4);
  std::vector<Vote> votes = votes_after(previous, 2);
  votes[0].stop_request = 1;
  votes[1].snapshot_idle = 0;
  EXPECT_EQ(decide(votes, previous, policy()).stop_after, 0u);
  EXPECT_EQ(decide(votes, previous, policy()).snapshot_after, 0u);
  previous.snapshot_after = 1;
  previous.checksum = previous.compute_checksum();
  votes = votes_after(previous, 2);
  votes[0].stop_request = 1;
  DecisionRecord record = decide(votes, previous, policy());
  EXPECT_EQ(record.stop_after, 0u);
  EXPECT_EQ(record.snapshot_before, 1u);
}

TEST(Decide, PeriodicSnapshotIsLeftOutWhileAnotherIsUnderWay) {
  StepPolicy every = policy();
  every.snapshot_every = 5;
  std::vector<Vote> votes = votes_after(record_of(4), 2);
  EXPECT_EQ(decide(votes, record_of(4), every).snapshot_after, 1u);
  EXPECT_EQ(decide(votes_after(record_of(5), 2), record_of(5), every).snapshot_after, 0u);
  votes[0].snapshot_idle = 0;
  EXPECT_EQ(decide(votes, record_of(4), every).snapshot_after, 0u);
}

TEST(Decide, RequestedSnapshotIsOrderedOnceAndOutlastsADelay) {
  std::vector<Vote> votes = votes_after(record_of(4), 2);
  votes[1].snapshot_request = 3;
  votes[0].served_request = votes[1].served_request = 2;
  EXPECT_EQ(decide(votes, record_of(4), policy()).snapshot_after, 1u);
  votes[0].snapshot_idle = 0;
  EXPECT_EQ(decide(votes, record_of(4), policy()).snapshot_after, 0u);
  votes[0].snapshot_idle = 1;
  votes[0].served_request = 3;
  EXPECT_EQ(decide(votes, record_of(4), policy()).snapshot_after, 0u);
}

TEST(Decide, LastStepStopsAndTheOneBeforeItOrdersNoSnapshot) {
  StepPolicy every = policy();
  every.snapshot_every = 1;
  EXPECT_EQ(decide(votes_after(record_of(98), 1), record_of(98), every).snapshot_after, 0u);
  DecisionRecord last = decide(votes_after(record_of(99), 1), record_of(99), every);
  EXPECT_EQ(last.stop_after, 1u);
  EXPECT_EQ(last.snapshot_after, 1u);
}

TEST(Decide, ChangeTakesEffectOnlyWhenAllOfferIt) {
  DecisionRecord previous = record_of(4);
  previous.change_number = 1;
  previous.change_step = 3;
  previous.checksum = previous.compute_checksum();
  std::vector<Vote> votes = votes_after(previous, 2);
  votes[0].change_number = 2;
  votes[1].change_number = 1;
  StepPolicy followed = policy();
  followed.change_number = 1;
  DecisionRecord kept = decide(votes, previous, followed);
  EXPECT_EQ(kept.change_number, 1u);
  EXPECT_EQ(kept.change_step, 3u);
  votes[1].change_number = 2;
  followed.change_number = 2;
  DecisionRecord changed = decide(votes, previous, followed);
  EXPECT_EQ(changed.change_number, 2u);
  EXPECT_EQ(changed.change_step, 5u);
}

TEST(Decide, UnequalOffersKeepTheSettingOfTheRecordBeforeWhateverTheyAre) {
  DecisionRecord previous = record_of(4);
  previous.change_number = 6;
  std::vector<Vote> votes = votes_after(previous, 3);
  for (auto offers : std::vector<std::vector<std::uint64_t>>{{6, 7, 7}, {7, 6, 6}, {7, 7, 6}, {6, 6, 6}}) {
    for (std::size_t rank = 0; rank < 3; ++rank) votes[rank].change_number = offers[rank];
    EXPECT_EQ(decided_change(votes, previous, {}).change_number, 6u);
  }
  for (Vote& vote : votes) vote.change_number = 7;
  EXPECT_EQ(decided_change(votes, previous, {}).change_number, 7u);
}

TEST(DecideDeathTest, NeverFollowsAnotherSettingThanTheOneDecided) {
  std::vector<Vote> votes = votes_after(record_of(4), 2);
  for (Vote& vote : votes) vote.change_number = 1;
  EXPECT_DEATH(decide(votes, record_of(4), policy()), "another setting");
}

TEST(Decide, RanksThatDisagreeAreAnErrorThatNamesThem) {
  DecisionRecord previous = record_of(4);
  auto error_of = [&](auto change) {
    std::vector<Vote> votes = votes_after(previous, 2);
    change(votes[1]);
    try {
      decide(votes, previous, policy());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of([](Vote& vote) { vote.previous_record = 1; }), testing::HasSubstr("rank 1 decided step 4"));
  EXPECT_THAT(error_of([](Vote& vote) { vote.step = 6; }), testing::HasSubstr("rank 1 votes for step 6"));
  EXPECT_THAT(error_of([](Vote& vote) { vote.generation = 9; }), testing::HasSubstr("generation 9"));
  EXPECT_THAT(error_of([](Vote& vote) { vote.loss_tokens = 9; }), testing::HasSubstr("9 loss tokens"));
  EXPECT_EQ(error_of([](Vote&) {}), "");
}

TEST(Decide, FirstStepAfterACheckpointFollowsTheLoadStep) {
  StepPolicy loaded = policy();
  loaded.load_step = 50;
  EXPECT_EQ(decide(std::vector{vote(51)}, {}, loaded).step, 51u);
  EXPECT_THROW(decide(std::vector{vote(52)}, {}, loaded), Error);
}

TEST(MayVote, NeedsTheCommitOfTheStepBefore) {
  EXPECT_FALSE(may_vote(5, 3, true, {}, policy()));
  EXPECT_TRUE(may_vote(5, 4, false, {}, policy()));
}

TEST(MayVote, LastStepWaitsForTheSnapshotUnderWay) {
  EXPECT_FALSE(may_vote(100, 99, false, {}, policy()));
  EXPECT_TRUE(may_vote(100, 99, true, {}, policy()));
}

TEST(SlotFree, OnlyWhenItsStepIsDecided) {
  EXPECT_TRUE(slot_free(never, 0));
  EXPECT_TRUE(slot_free(4, 4));
  EXPECT_FALSE(slot_free(5, 4));
}

}  // namespace
}  // namespace ganymede::step_protocol
