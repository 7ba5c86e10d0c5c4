#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "common/step_protocol/snapshot_machine.h"
#include "common/step_protocol/update_machine.h"

namespace ganymede::step_protocol {
namespace {

using enum UpdateActionKind;

/// Carries actions out on the words until the server waits. Spans of two chunks.
std::vector<UpdateActionKind> run(UpdateWords& words, std::uint64_t chunks) {
  std::vector<UpdateActionKind> kinds;
  UpdateState state;
  while (true) {
    UpdateAction action = next_action(state, words, chunks);
    if (action.kind == await_decision) return kinds;
    kinds.push_back(action.kind);
    if (action.kind == arm_snapshot) words.snapshot = armed_word(action.step);
    if (action.kind == count) words.chunks_done += 2;
    state = after(state, action);
  }
}

TEST(UpdateMachine, AppliesEverySpanInOrderAndWaits) {
  UpdateWords words{.chunks_done = 8, .decided_step = 3};
  EXPECT_EQ(run(words, 4), (std::vector{update, count, update, count}));
  EXPECT_EQ(words.chunks_done, 12u);
}

TEST(UpdateMachine, RestartedServerLooksAtTheTilesOfTheSpanAgain) {
  EXPECT_EQ(next_action({}, {.chunks_done = 10, .decided_step = 3}, 4).kind, update);
  EXPECT_EQ(next_action({}, {.chunks_done = 10, .decided_step = 3}, 4).chunk, 2u);
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
