#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/update_machine.h"

namespace ganymede::step_protocol {
namespace {

using enum UpdateActionKind;

/// Carries actions out on the words until the server waits.
std::vector<UpdateActionKind> run(UpdateWords& words, std::uint64_t chunks) {
  std::vector<UpdateActionKind> kinds;
  UpdateState state;
  while (true) {
    UpdateAction action = next_action(state, words, chunks);
    if (action.kind == await_decision) return kinds;
    kinds.push_back(action.kind);
    if (action.kind == arm_snapshot) words.snapshot = armed_word(action.step);
    if (action.kind == clear_seal) words.seal = 0;
    if (action.kind == store_seal) words.seal = words.chunks_done + 1;
    if (action.kind == count) ++words.chunks_done;
    state = after(state, action);
  }
}

TEST(UpdateMachine, AppliesEveryChunkInOrderAndWaits) {
  UpdateWords words{.chunks_done = 4, .decided_step = 3};
  EXPECT_EQ(run(words, 2),
            (std::vector{compute, store_seal, copy, count, clear_seal, compute, store_seal, copy, count}));
  EXPECT_EQ(words.chunks_done, 6u);
}

TEST(UpdateMachine, RestartedServerCopiesASealedChunkAgain) {
  UpdateWords words{.chunks_done = 5, .seal = 6, .decided_step = 3};
  EXPECT_EQ(next_action({}, words, 2).kind, copy);
}

TEST(UpdateMachine, RestartedServerDoesNotBelieveTheSealOfACountedChunk) {
  UpdateWords words{.chunks_done = 5, .seal = 5, .decided_step = 3};
  EXPECT_EQ(next_action({}, words, 2).kind, clear_seal);
}

TEST(UpdateMachine, ArmsTheOrderedSnapshotBeforeTheNextStep) {
  UpdateWords words{.chunks_done = 6, .decided_step = 3, .record_snapshot_after = true};
  EXPECT_EQ(run(words, 2), std::vector{arm_snapshot});
  EXPECT_EQ(words.snapshot, armed_word(3));
  UpdateWords late{.chunks_done = 6, .decided_step = 4, .record_snapshot_before = true};
  EXPECT_EQ(run(late, 2).front(), arm_snapshot);
  EXPECT_EQ(late.snapshot, armed_word(3));
}

TEST(UpdateMachine, EndedSnapshotIsNotArmedAgain) {
  UpdateWords words{.chunks_done = 6, .decided_step = 3, .snapshot = ended_word(3), .record_snapshot_after = true};
  EXPECT_EQ(next_action({}, words, 2).kind, await_decision);
}

TEST(UpdateMachine, ContradictingWordsAreAnError) {
  EXPECT_THROW(next_action({}, {.chunks_done = 4, .decided_step = 4}, 2), Error);
  EXPECT_THROW(next_action({}, {.chunks_done = 4, .decided_step = 1}, 2), Error);
  EXPECT_THROW(next_action({}, {.chunks_done = 5, .decided_step = 2}, 2), Error);
}

TEST(DecisionRecord, ChangedByteIsSeen) {
  DecisionRecord record;
  record.step = 9;
  record.checksum = record.compute_checksum();
  EXPECT_TRUE(record.intact());
  record.clip_factor = 0.5;
  EXPECT_FALSE(record.intact());
}

}  // namespace
}  // namespace ganymede::step_protocol
