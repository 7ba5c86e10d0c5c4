#include <gtest/gtest.h>

#include "common/base/error.h"
#include "launcher/coordinator/checkpoint_parts.h"
#include "launcher/coordinator/key_value_store.h"
#include "launcher/coordinator/membership.h"

namespace ganymede::coordinator {
namespace {

KeyValueStore::Value bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST(KeyValueStore, KeyIsFoundOnceItWasSet) {
  KeyValueStore store;
  store.begin(1);
  EXPECT_FALSE(store.get(1, "a"));
  store.set(1, "a", bytes("x"));
  EXPECT_EQ(store.get(1, "a"), bytes("x"));
  store.set(1, "a", bytes(""));
  EXPECT_EQ(store.get(1, "a"), bytes(""));
}

TEST(KeyValueStore, NewGenerationForgetsTheOldOneAndRefusesItsLateMembers) {
  KeyValueStore store;
  store.begin(1);
  store.set(1, "a", bytes("x"));
  store.begin(2);
  EXPECT_FALSE(store.get(2, "a"));
  EXPECT_THROW(store.get(1, "a"), Error);
  EXPECT_THROW(store.set(1, "a", bytes("late")), Error);
  EXPECT_THROW(store.set(3, "a", bytes("early")), Error);
  EXPECT_FALSE(store.get(2, "a"));
}

TEST(KeyValueStore, RepeatedAddOfOneRequestCountsOnce) {
  KeyValueStore store;
  store.begin(1);
  EXPECT_EQ(store.add(1, "n", 5, "worker.0", 7), 5);
  EXPECT_EQ(store.add(1, "n", 5, "worker.0", 7), 5);
  EXPECT_EQ(store.add(1, "n", 5, "worker.1", 7), 10);
  EXPECT_EQ(store.add(1, "n", -1, "worker.0", 8), 9);
  EXPECT_EQ(store.get(1, "n"), bytes("9"));
}

TEST(KeyValueStore, AddToAValueThatIsNoNumberIsRefused) {
  KeyValueStore store;
  store.begin(1);
  store.set(1, "n", bytes("ten"));
  EXPECT_THROW(store.add(1, "n", 1, "worker.0", 1), Error);
  store.set(1, "n", bytes("9223372036854775807"));
  EXPECT_THROW(store.add(1, "n", 1, "worker.0", 1), Error);
}

TEST(KeyValueStore, LimitsHoldAndARefusedCallChangesNothing) {
  KeyValueStore store(KeyValueStore::Limits{.key_bytes = 4, .value_bytes = 8, .entries = 2, .total_bytes = 12});
  store.begin(1);
  EXPECT_THROW(store.set(1, "", bytes("x")), Error);
  EXPECT_THROW(store.set(1, "abcde", bytes("x")), Error);
  EXPECT_THROW(store.set(1, "a", bytes("123456789")), Error);
  store.set(1, "a", bytes("12345678"));
  EXPECT_THROW(store.set(1, "b", bytes("123")), Error);
  store.set(1, "a", bytes("1"));  // replacing gives the room back
  store.set(1, "b", bytes("123"));
  EXPECT_THROW(store.set(1, "c", bytes("")), Error);
  EXPECT_EQ(store.get(1, "a"), bytes("1"));
  EXPECT_FALSE(store.get(1, "c"));
}

TEST(CheckpointParts, SetIsCompleteWhenEveryRankReported) {
  CheckpointParts parts(2);
  EXPECT_FALSE(parts.report(10, 1, 200, "b").complete);
  EXPECT_FALSE(parts.report(10, 1, 201, "c").complete);  // a repeated report is not another rank's
  auto receipt = parts.report(10, 0, 100, "a");
  EXPECT_TRUE(receipt.complete);
  EXPECT_EQ(receipt.hashes, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(receipt.bytes, (std::vector<std::uint64_t>{100, 201}));
  parts.committed(10);
  EXPECT_TRUE(parts.report(10, 0, 100, "a").complete);  // asked again after the commit
}

TEST(CheckpointParts, StepsAreKeptApartAndUnfinishedOnesAreBounded) {
  CheckpointParts parts(2);
  parts.report(1, 0, 1, "a");
  EXPECT_FALSE(parts.report(2, 1, 1, "b").complete);
  for (std::uint64_t step = 3; step < 3 + CheckpointParts::most_sets; ++step) parts.report(step, 0, 1, "a");
  EXPECT_FALSE(parts.report(1, 1, 1, "b").complete);
  EXPECT_THROW(parts.report(5, 2, 1, "x"), Error);
  EXPECT_THROW(parts.report(5, -1, 1, "x"), Error);
}

TEST(Membership, FirstGenerationBeginsOnceWhenEveryWorkerIsThere) {
  Membership world(2, 0);
  world.worker_registered(0);
  world.worker_registered(0);
  EXPECT_FALSE(world.begin());
  world.worker_registered(1);
  EXPECT_EQ(world.begin(), 1u);
  world.worker_registered(1);  // asked again
  EXPECT_FALSE(world.begin());
}

TEST(Membership, EveryDeathOfAWorkerBeginsAnother) {
  Membership world(2, 0);
  world.worker_registered(0);
  world.worker_registered(1);
  EXPECT_EQ(world.begin(), 1u);
  EXPECT_EQ(world.worker_died(1), 2u);
  EXPECT_EQ(world.worker_died(0), 3u);
  world.worker_registered(0);  // joins generation 3
  EXPECT_FALSE(world.complete());
  world.worker_registered(1);
  EXPECT_TRUE(world.complete());
  EXPECT_FALSE(world.begin());
  EXPECT_EQ(world.generation(), 3u);
}

TEST(Membership, DeathBeforeTheFirstGenerationBeginsNone) {
  Membership world(2, 0);
  world.worker_registered(0);
  EXPECT_FALSE(world.worker_died(0));
  world.worker_registered(1);
  EXPECT_FALSE(world.begin());
  world.worker_registered(0);
  EXPECT_EQ(world.begin(), 1u);
}

TEST(Membership, RestartedLauncherGoesOnAboveTheHighestGenerationSeen) {
  Membership world(1, 41);
  EXPECT_EQ(world.generation(), 41u);
  world.worker_registered(0);
  EXPECT_EQ(world.begin(), 42u);
}

TEST(Membership, GenerationsThatFailInARowComeToAnEnd) {
  Membership membership(1, 4);
  EXPECT_FALSE(membership.is_current(4)) << "that of the coordinator before";
  membership.worker_registered(0);
  EXPECT_EQ(membership.begin(), 5u);
  EXPECT_TRUE(membership.is_current(5));
  EXPECT_EQ(membership.failed(7), 6u);
  EXPECT_FALSE(membership.is_current(5));
  EXPECT_EQ(membership.failed(7), 7u);
  EXPECT_EQ(membership.failed(8), 8u) << "a step between them: it counts from the beginning";
  EXPECT_EQ(membership.failed(8), 9u);
  EXPECT_EQ(membership.failed(8), std::nullopt);
  EXPECT_EQ(membership.generation(), 9u);
}

}  // namespace
}  // namespace ganymede::coordinator
