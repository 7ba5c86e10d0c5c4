#include <gtest/gtest.h>

#include "tests/fault/spec/checker.h"

/// The specification of the protocol (README.md): every model holds, and none does when one of its rules is off.
namespace ganymede::fault {
namespace {

struct Case {
  const char* name;
  const char* file;
  std::vector<std::string> macros;
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

const std::vector<std::string> two_ranks_swap = {"RANKS=2", "STEPS=2", "WARM=0", "FAULTS=0", "REFUSALS"};

std::vector<std::string> with(const char* macro, std::vector<std::string> macros) {
  macros.emplace_back(macro);
  return macros;
}

class Specification : public testing::TestWithParam<Case> {};

TEST_P(Specification, HoldsInEveryStateThatCanBeReached) {
  Finding finding = check_model(GetParam().file, GetParam().macros);
  EXPECT_FALSE(finding.violated) << finding.output;
  EXPECT_GT(finding.states, 10u);
  RecordProperty("states", std::to_string(finding.states));
  std::printf("%s: %llu states\n", GetParam().file, static_cast<unsigned long long>(finding.states));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Specification,
    testing::Values(Case{"StepOfOneRank", "step.pml", {"RANKS=1", "FAULTS=3", "STEPS=3"}},
                    Case{"StepOfTwoRanks", "step.pml", {}}, Case{"RedoOfChunks", "redo.pml", {}},
                    Case{"MatrixOfTwoRanks", "matrix.pml", {}}, Case{"Snapshot", "snapshot.pml", {}},
                    Case{"SnapshotWithOneImage", "snapshot.pml", {"SLOTS=1"}},
                    Case{"TwoChanges", "change.pml", {"FAULTS=0", "STEPS=2"}},
                    Case{"ChangeAndAFault", "change.pml", {"CHANGES=1", "STEPS=1"}},
                    Case{"SwapOfOneRank", "swap.pml", {}},
                    Case{"SwapOfTwoRanksThatMayRefuse", "swap.pml", two_ranks_swap},
                    Case{"BatchSlots", "batch.pml", {}}, Case{"Incarnations", "incarnation.pml", {}},
                    Case{"Coordinator", "coordinator.pml", {}}, Case{"Manifest", "manifest.pml", {}},
                    Case{"RescueOfMemory", "rescue.pml", {}}, Case{"WeakMemoryOfWords", "weak_memory.pml", {"MODEL=1"}},
                    Case{"WeakMemoryOfImages", "weak_memory.pml", {"MODEL=2"}}),
    [](const auto& tested) { return tested.param.name; });

/// The models must see what each rule guards against, or their silence above would mean nothing.
class WithoutARuleOfTheSpecification : public testing::TestWithParam<Case> {};

TEST_P(WithoutARuleOfTheSpecification, AViolationIsFound) {
  Finding finding = check_model(GetParam().file, GetParam().macros);
  EXPECT_TRUE(finding.violated) << finding.output;
  std::printf("%s: after %llu states: %s\n", GetParam().file, static_cast<unsigned long long>(finding.states),
              finding.violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WithoutARuleOfTheSpecification,
    testing::Values(Case{"LanesEndFirst", "step.pml", {"WITHOUT_RULE_1"}},
                    Case{"OneWriter", "redo.pml", {"WITHOUT_RULE_2"}},
                    Case{"NewerGeneration", "step.pml", {"WITHOUT_RULE_3"}},
                    Case{"LabelsOfCollectives", "step.pml", {"WITHOUT_RULE_4"}},
                    Case{"GradientsOfAGeneration", "step.pml", {"WITHOUT_RULE_5", "RANKS=1", "FAULTS=2"}},
                    Case{"VoteAfterCommit", "step.pml", {"WITHOUT_RULE_6"}},
                    Case{"LeaveTogether", "step.pml", {"WITHOUT_RULE_7"}},
                    Case{"SegmentsOfOneIncarnation", "incarnation.pml", {"WITHOUT_RULE_8_EQUAL"}},
                    Case{"LoadedSegments", "incarnation.pml", {"WITHOUT_RULE_8_LOADED"}},
                    Case{"NewSegments", "incarnation.pml", {"WITHOUT_RULE_8_NEW"}},
                    Case{"RecordBeforeItsStep", "step.pml", {"WITHOUT_RULE_9"}},
                    Case{"HighestGenerationSeen", "coordinator.pml", {"WITHOUT_RULE_11"}},
                    Case{"OneProgressWord", "redo.pml", {"WITHOUT_RULE_12"}},
                    Case{"SkippedStepsCount", "redo.pml", {"WITHOUT_RULE_12_SKIPPED"}},
                    Case{"PublishedAgain", "redo.pml", {"WITHOUT_RULE_12_PUBLISHED"}},
                    Case{"SealOfTheNextChunk", "redo.pml", {"WITHOUT_RULE_13"}},
                    Case{"SentAfterTheFirstPhase", "matrix.pml", {"WITHOUT_RULE_14_PHASE"}},
                    Case{"ServedAgain", "matrix.pml", {"WITHOUT_RULE_14_SERVED"}},
                    Case{"ReturnedAfterItsRows", "matrix.pml", {"WITHOUT_RULE_14_RETURNED"}},
                    Case{"MatrixOfStoredStateAlone", "matrix.pml", {"WITHOUT_RULE_15"}},
                    Case{"AllOfferTheSame", "change.pml", {"WITHOUT_RULE_16_ALL", "FAULTS=0", "STEPS=2"}},
                    Case{"SettingBeforeItsNumber", "change.pml", {"WITHOUT_RULE_16_WHOLE", "FAULTS=0", "STEPS=2"}},
                    Case{"PreparedIsReadAgain", "change.pml", {"WITHOUT_RULE_17_AGAIN", "FAULTS=0", "STEPS=2"}},
                    Case{"FreedWhenNobodyNeedsIt", "change.pml", {"WITHOUT_RULE_17_FREED", "FAULTS=0", "STEPS=2"}},
                    Case{"PluginOfTheRecord", "change.pml", {"WITHOUT_RULE_17_LOADED", "CHANGES=1", "STEPS=2"}},
                    Case{"SnapshotOfTheIdle", "snapshot.pml", {"WITHOUT_RULE_18_IDLE"}},
                    Case{"NoTwoSnapshotsInARow", "snapshot.pml", {"WITHOUT_RULE_18_BEFORE"}},
                    Case{"ArmedBeforeTheFirstCopy", "snapshot.pml", {"WITHOUT_RULE_18_ARMED"}},
                    Case{"BeforeImage", "snapshot.pml", {"WITHOUT_RULE_19_IMAGE"}},
                    Case{"ImageBeforeItsFlag", "snapshot.pml", {"WITHOUT_RULE_19_IMAGE_FIRST"}},
                    Case{"FlagAfterReading", "snapshot.pml", {"WITHOUT_RULE_19_FLAG"}},
                    Case{"RestartedReaderCancels", "snapshot.pml", {"WITHOUT_RULE_20_RESTARTED"}},
                    Case{"CheckedBeforeItsReport", "snapshot.pml", {"WITHOUT_RULE_20_CHECKED", "SLOTS=1"}},
                    Case{"BatchesAreKept", "batch.pml", {"WITHOUT_RULE_21_KEPT"}},
                    Case{"SlotsOfDecidedSteps", "batch.pml", {"WITHOUT_RULE_21_REUSE"}},
                    Case{"EqualityOfBatches", "batch.pml", {"WITHOUT_RULE_21_EQUAL"}},
                    Case{"SilentNodesAreGivenUp", "coordinator.pml", {"WITHOUT_GIVING_UP"}},
                    Case{"StandbyIsAwaited", "swap.pml", {"WITHOUT_STANDBY_AWAITED"}},
                    Case{"AdoptedBeforeItsWord", "swap.pml", {"WITHOUT_WORD_LAST"}},
                    Case{"OneServerAStep", "swap.pml", {"WITHOUT_ONE_SERVER_A_STEP"}},
                    Case{"PartsOfOneLaunch", "manifest.pml", {"WITHOUT_LAUNCH"}},
                    Case{"AllPartsAreReported", "manifest.pml", {"WITHOUT_ALL_PARTS"}},
                    Case{"ManifestGoesFirst", "manifest.pml", {"WITHOUT_MANIFEST_FIRST"}},
                    Case{"NewManifestBeforeTheOldGoes", "manifest.pml", {"WITHOUT_NEW_BEFORE_OLD"}},
                    Case{"RescueOfWhatIsCommitted", "rescue.pml", {"WITHOUT_COMMITTED"}},
                    Case{"RescueLooksAgain", "rescue.pml", {"WITHOUT_LOOKING_AGAIN"}},
                    Case{"RescueClearsMarks", "rescue.pml", {"WITHOUT_CLEARED_MARKS"}},
                    Case{"RescueAfterTheWorkers", "rescue.pml", {"WITHOUT_WORKERS_ENDED"}},
                    Case{"RescueAfterTheLost", "rescue.pml", {"WITHOUT_LOST_ENDED"}},
                    Case{"ReleaseOfWords", "weak_memory.pml", {"WITHOUT_RELEASE", "MODEL=1"}},
                    Case{"AcquireOfWords", "weak_memory.pml", {"WITHOUT_ACQUIRE", "MODEL=1"}},
                    Case{"ReleaseOfFlags", "weak_memory.pml", {"WITHOUT_RELEASE", "MODEL=2"}},
                    Case{"BarrierOfTheWriter", "weak_memory.pml", {"WITHOUT_BARRIER_OF_WRITER", "MODEL=2"}},
                    Case{"BarrierOfTheReader", "weak_memory.pml", {"WITHOUT_BARRIER_OF_READER", "MODEL=2"}},
                    Case{"RefusedTogether", "swap.pml", with("WITHOUT_REFUSED_TOGETHER", two_ranks_swap)}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ganymede::fault
