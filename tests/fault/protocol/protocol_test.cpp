#include <gtest/gtest.h>

#include <chrono>

#include "tests/fault/protocol/explorer.h"

namespace ganymede::fault {
namespace {

struct Case {
  const char* name;
  Configuration configuration;
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class EveryInterleaving : public testing::TestWithParam<Case> {};

TEST_P(EveryInterleaving, EndsInTheStateOfAnUndisturbedRun) {
  Exploration result = explore(GetParam().configuration);
  EXPECT_EQ(result.violation, "") << result.trace;
  EXPECT_GT(result.ends, 0u);
  RecordProperty("states", std::to_string(result.states));
  std::printf("%s: %llu states, %llu moves, %llu ends\n", GetParam().name,
              static_cast<unsigned long long>(result.states), static_cast<unsigned long long>(result.moves),
              static_cast<unsigned long long>(result.ends));
}

INSTANTIATE_TEST_SUITE_P(
    Cells, EveryInterleaving,
    testing::Values(
        Case{"OneRankThreeFaults", {.ranks = 1, .chunks = 2, .steps = 4, .faults = 3}},
        Case{"OneRankTwoStrips", {.ranks = 1, .chunks = 2, .strips = 2, .steps = 3, .faults = 3}},
        Case{"TwoRanksTwoStrips", {.ranks = 2, .chunks = 1, .strips = 2, .steps = 2, .faults = 1}},
        Case{"MatrixOfTwoStrips", {.ranks = 1, .chunks = 2, .strips = 2, .steps = 2, .faults = 3, .matrices = true}},
        Case{"SnapshotsOfTwoStrips",
             {.ranks = 1, .chunks = 2, .strips = 2, .steps = 3, .faults = 1, .reader = true, .snapshot_every = 1}},
        Case{"OneRankFourFaults", {.ranks = 1, .chunks = 2, .steps = 3, .faults = 4}},
        Case{"TwoRanksTwoFaults", {.ranks = 2, .chunks = 1, .steps = 3, .faults = 2}},
        Case{"TwoRanksThreeFaults", {.ranks = 2, .chunks = 1, .steps = 2, .faults = 3}},
        Case{"TwoRanksTwoBuckets", {.ranks = 2, .chunks = 2, .steps = 2, .faults = 2}},
        Case{"ThreeRanksOneFault", {.ranks = 3, .chunks = 1, .steps = 3, .faults = 1}},
        Case{"ThreeRanksTwoFaults", {.ranks = 3, .chunks = 1, .steps = 2, .faults = 2}},
        Case{"StopAtAnyMoment", {.ranks = 2, .chunks = 1, .steps = 3, .faults = 1, .stop_request = true}},
        Case{"OneRankTwoChanges", {.ranks = 1, .chunks = 1, .steps = 3, .faults = 2, .changes = 2}},
        Case{"TwoRanksTwoChanges", {.ranks = 2, .chunks = 1, .steps = 3, .faults = 1, .changes = 2}},
        Case{"TwoRanksThreeChanges", {.ranks = 2, .chunks = 1, .steps = 4, .faults = 0, .changes = 3}},
        Case{"ChangeAndStop", {.ranks = 2, .chunks = 1, .steps = 2, .faults = 1, .changes = 1, .stop_request = true}},
        Case{"OneMatrixThreeFaults", {.ranks = 1, .chunks = 2, .steps = 3, .faults = 3, .matrices = true}},
        Case{"TwoRanksOneMatrix", {.ranks = 2, .chunks = 2, .steps = 2, .faults = 2, .matrices = true}},
        Case{"TwoRanksOneMatrixLonger", {.ranks = 2, .chunks = 2, .steps = 3, .faults = 1, .matrices = true}},
        Case{"OneRankSwap", {.ranks = 1, .chunks = 2, .steps = 4, .faults = 2, .changes = 1, .swap = true}},
        Case{"TwoRanksSwap", {.ranks = 2, .chunks = 1, .steps = 3, .faults = 1, .changes = 1, .swap = true}},
        Case{"OneRankRefusesItsSwap",
             {.ranks = 1, .chunks = 1, .steps = 4, .faults = 2, .changes = 1, .swap = true, .refusals = true}},
        Case{"TwoRanksRefuseASwap",
             {.ranks = 2, .chunks = 1, .steps = 3, .faults = 0, .changes = 1, .swap = true, .refusals = true}},
        Case{"Snapshots", {.ranks = 1, .chunks = 2, .steps = 3, .faults = 2, .reader = true, .snapshot_every = 1}},
        Case{"SnapshotsAndStop",
             {.ranks = 1,
              .chunks = 2,
              .steps = 4,
              .faults = 1,
              .reader = true,
              .snapshot_every = 1,
              .stop_request = true}},
        Case{
            "SnapshotsWithASmallSideBuffer",
            {.ranks = 1, .chunks = 2, .steps = 4, .faults = 1, .reader = true, .snapshot_every = 1, .image_slots = 1}}),
    [](const auto& tested) { return tested.param.name; });

/// The explorer must find what each rule guards against, or its silence above would mean nothing.
class WithoutARule : public testing::TestWithParam<Case> {};

TEST_P(WithoutARule, TheExplorerFindsAViolation) {
  Exploration result = explore(GetParam().configuration);
  EXPECT_NE(result.violation, "") << result.states << " states";
  EXPECT_EQ(result.violation.find("more than"), std::string::npos) << "not explored to the end";
  std::printf("%s: after %llu states: %s\n", GetParam().name, static_cast<unsigned long long>(result.states),
              result.violation.c_str());
}

constexpr Configuration without(Mutation mutation, Configuration configuration) {
  configuration.mutation = mutation;
  return configuration;
}
constexpr Configuration one_rank{.ranks = 1, .chunks = 2, .steps = 3, .faults = 2};
constexpr Configuration two_ranks{.ranks = 2, .chunks = 1, .steps = 3, .faults = 2};
constexpr Configuration matrices{.ranks = 2, .chunks = 2, .steps = 2, .faults = 1, .matrices = true};
constexpr Configuration changes{.ranks = 2, .chunks = 1, .steps = 3, .faults = 0, .changes = 2};
constexpr Configuration swap{.ranks = 1, .chunks = 1, .steps = 3, .faults = 1, .changes = 1, .swap = true};
constexpr Configuration refused{
    .ranks = 2, .chunks = 1, .steps = 3, .faults = 0, .changes = 1, .swap = true, .refusals = true};
constexpr Configuration snapshots{
    .ranks = 1, .chunks = 2, .steps = 4, .faults = 1, .reader = true, .snapshot_every = 1};

INSTANTIATE_TEST_SUITE_P(
    Rules, WithoutARule,
    testing::Values(Case{"LaneOutlivesItsAttempt", without(Mutation::late_lane, two_ranks)},
                    Case{"JoinsItsOldGeneration", without(Mutation::same_generation, two_ranks)},
                    Case{"GenerationNotCompared", without(Mutation::generation_not_compared, two_ranks)},
                    Case{"VoteBeforeCommit", without(Mutation::vote_before_commit, two_ranks)},
                    Case{"LeavesAlone", without(Mutation::leave_alone, two_ranks)},
                    Case{"DecidedBeforeRecord", without(Mutation::decided_before_record, two_ranks)},
                    Case{"OneRecordSlot", without(Mutation::one_record_slot, one_rank)},
                    Case{"NoRedoArea", without(Mutation::no_redo_area, one_rank)},
                    Case{"SealBeforeRedo", without(Mutation::seal_before_redo, one_rank)},
                    Case{"AnySealBelieved", without(Mutation::any_seal_believed, one_rank)},
                    Case{"MatricesNotServedAgain", without(Mutation::not_served_again, matrices)},
                    Case{"RowsSentBeforeTheFirstPhase", without(Mutation::sent_before_first_phase, matrices)},
                    Case{"ReturnedBeforeItsRows", without(Mutation::returned_before_rows, matrices)},
                    Case{"PreparedBeforeItsSetting", without(Mutation::prepared_before_setting, changes)},
                    Case{"NewestOfferFollowed", without(Mutation::newest_offer_followed, changes)},
                    Case{"NextChangeAtOnce", without(Mutation::next_change_at_once, changes)},
                    Case{"StandbyNotAwaited", without(Mutation::standby_not_awaited, swap)},
                    Case{"AdoptedBeforeItsSlots", without(Mutation::adopted_before_slots, swap)},
                    Case{"RefusedAlone", without(Mutation::refused_alone, refused)},
                    Case{"SnapshotWhileBusy", without(Mutation::snapshot_while_busy, snapshots)},
                    Case{"ArmedLate", without(Mutation::armed_late, snapshots)},
                    Case{"NoBeforeImage", without(Mutation::no_before_image, snapshots)},
                    Case{"FlagBeforeRead", without(Mutation::flag_before_read, snapshots)},
                    Case{"NoCheckBeforeReport", without(Mutation::no_check_before_report,
                                                        [] {
                                                          Configuration small = snapshots;
                                                          small.image_slots = 1;
                                                          return small;
                                                        }())},
                    Case{"NoCancelAfterRestart", without(Mutation::no_cancel_after_restart, snapshots)}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ganymede::fault
