#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/step_protocol/worker_machine.h"

namespace ganymede::step_protocol {
namespace {

ExchangeSlot slot(std::uint64_t committed, std::uint64_t decided) {
  ExchangeSlot result;
  result.generation = 2;
  result.incarnation = 1;
  result.state_intact = 1;
  result.committed_step = committed;
  result.decided_step = decided;
  result.record.step = decided;
  result.record.checksum = result.record.compute_checksum();
  return result;
}

TEST(Resolve, EqualRanksGoOn) {
  Resolution result = resolve(std::vector{slot(6, 7), slot(7, 7)});
  EXPECT_EQ(result.kind, ResolutionKind::go_on);
  EXPECT_EQ(result.step, 8u);
}

TEST(Resolve, FreshRunHasNoRecordAndGoesOn) {
  ExchangeSlot fresh = slot(0, 0);
  fresh.record = {};
  Resolution result = resolve(std::vector{fresh, fresh});
  EXPECT_EQ(result.kind, ResolutionKind::go_on);
  EXPECT_EQ(result.step, 1u);
}

TEST(Resolve, OneDecidedRankIsAdoptedByAll) {
  Resolution result = resolve(std::vector{slot(7, 7), slot(7, 8), slot(8, 8)});
  EXPECT_EQ(result.kind, ResolutionKind::adopt);
  EXPECT_EQ(result.step, 9u);
  EXPECT_EQ(result.source, 1);
}

TEST(Resolve, StatesTwoStepsApartGoBackToTheCheckpoint) {
  Resolution result = resolve(std::vector{slot(6, 7), slot(8, 8)});
  EXPECT_EQ(result.kind, ResolutionKind::from_checkpoint);
  EXPECT_THAT(result.reason, testing::HasSubstr("step 8"));
}

TEST(Resolve, TornSegmentsAndOtherIncarnationsGoBackToTheCheckpoint) {
  ExchangeSlot torn = slot(7, 7), old = slot(7, 7);
  torn.state_intact = 0;
  old.incarnation = 0;
  EXPECT_EQ(resolve(std::vector{slot(7, 7), torn}).kind, ResolutionKind::from_checkpoint);
  EXPECT_EQ(resolve(std::vector{slot(7, 7), old}).kind, ResolutionKind::from_checkpoint);
}

TEST(Resolve, DamagedRecordIsNotAdopted) {
  ExchangeSlot damaged = slot(7, 8);
  damaged.record.lr = 1;
  Resolution result = resolve(std::vector{slot(7, 7), damaged});
  EXPECT_EQ(result.kind, ResolutionKind::from_checkpoint);
  EXPECT_THAT(result.reason, testing::HasSubstr("rank 1"));
}

TEST(Resolve, TwoRecordsOfOneStepStopTheRun) {
  ExchangeSlot other = slot(7, 7);
  other.record.lr = 1;
  other.record.checksum = other.record.compute_checksum();
  Resolution result = resolve(std::vector{slot(7, 7), other});
  EXPECT_EQ(result.kind, ResolutionKind::diverged);
  EXPECT_THAT(result.reason, testing::HasSubstr("ranks 0 and 1"));
}

TEST(Resolve, SlotsOfTwoGenerationsAreNotMixed) {
  ExchangeSlot late = slot(7, 7);
  late.generation = 1;
  EXPECT_EQ(resolve(std::vector{slot(7, 7), late}).kind, ResolutionKind::diverged);
}

}  // namespace
}  // namespace ganymede::step_protocol
