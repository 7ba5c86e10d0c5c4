#include "common/cell/layouts.h"

#include <gtest/gtest.h>

#include <set>

#include "common/plan/plan.h"
#include "common/step_protocol/control_block.h"
#include "common/wire/bucket_form.h"
#include "tests/support/builtin_facts.h"
#include "tests/unit/shm/memory.h"

namespace ganymede::shm {
namespace {

config::Config two_ranks() {
  config::Config config;
  config.parallel.ranks = 2;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  config.data.slots = 3;
  config.validation.rows = 5;
  return config;
}

TEST(Layouts, OfACellHaveDistinctNamesAndAlikeHashesInEveryProcess) {
  config::Config config = two_ranks();
  std::set<std::string> names;
  auto layouts = cell_layouts(config, placement::build(config, 1, builtin_facts()));
  auto again = cell_layouts(config, placement::build(config, 1, builtin_facts()));
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    names.insert(layouts[i].name);
    EXPECT_EQ(layouts[i].hash(), again[i].hash());
  }
  EXPECT_EQ(names, (std::set<std::string>{"control", "master", "working", "state.0", "gradients", "arena", "batches",
                                          "side.0", "exchange", "pool.0"}));
}

TEST(Layouts, APoolThatNobodyReadsIsNoSegment) {
  auto published = [](const config::Config& config) {
    auto layouts = cell_layouts(config, placement::build(config, 0, builtin_facts()));
    return std::any_of(layouts.begin(), layouts.end(), [](const Layout& layout) { return layout.name == "pool.0"; });
  };
  config::Config config = two_ranks();
  EXPECT_TRUE(published(config));
  config.topology.ranks_per_node = 1;
  EXPECT_FALSE(published(config));
  config.topology.ranks_per_node = 0;
  config.collectives.backend = config::CollectiveBackend::gloo;
  EXPECT_FALSE(published(config));
  config.collectives.backend = config::CollectiveBackend::automatic;
  config.parallel.ranks = 1;
  EXPECT_FALSE(published(config));
}

TEST(Layouts, ControlHoldsTheBlockAndOneWordABucket) {
  config::Config config = two_ranks();
  placement::Placement placement = placement::build(config, 0);
  Layout layout = control_layout(config, placement);
  EXPECT_EQ(layout.entry("block").bytes(), sizeof(step_protocol::ControlBlock));
  EXPECT_EQ(layout.entry("gradients_ready").bytes(), 8 * placement.buckets.size());
  EXPECT_EQ(layout.entry("working_copy_ready").bytes(), 8 * placement.buckets.size());
  EXPECT_EQ(layout.entry("expert_counts").bytes(), 8u * 2 * 8);
  EXPECT_EQ(layout.entry("services").bytes(), 4 * sizeof(step_protocol::ServiceWords));
}

TEST(Layouts, AModelWithoutExpertsStillHasAControlSegment) {
  config::Config config = two_ranks();
  config.model.experts = 0;
  EXPECT_EQ(control_layout(config, placement::build(config, 0)).entry("expert_counts").bytes(), 8u);
}

TEST(Layouts, StateHasASlotOfEveryElementAndARedoOfATileForEachStrip) {
  placement::Placement placement = placement::build(two_ranks(), 1, builtin_facts());
  Layout layout = state_layout(placement, 4);
  EXPECT_EQ(layout.name, "state.4");
  EXPECT_EQ(layout.entry("words").bytes(), sizeof(step_protocol::EpochWords));
  EXPECT_EQ(layout.entry("matrices_sent").bytes(), 8 * placement.buckets.size());
  EXPECT_EQ(layout.entry("slot.1").bytes(), 4u * placement.shard_elements);
  EXPECT_EQ(layout.entry("strips").bytes(), placement.strips * sizeof(step_protocol::StripWords));
  EXPECT_EQ(layout.entry("redo").bytes(), placement.strips * 4u * 3 * placement::tile_elements);
}

/// Muon's one slot for the matrices of layers, AdamW's two for the rest: no element has more than it needs.
TEST(Layouts, ColumnsOfStateHoldWhatTheOptimizersHaveSlotsFor) {
  config::Config config = two_ranks();
  config.optimizer.name = "muon";
  config.optimizer.groups["rest"].optimizer = "adamw";
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  Layout layout = state_layout(placement, 0);
  std::int64_t of_muon = 0;
  for (const auto& range : placement.owned) of_muon += placement.slots_of(range.parameter) == 1 ? range.count : 0;
  ASSERT_GT(of_muon, placement.shard_elements / 2);
  EXPECT_EQ(layout.entry("slot.0").bytes(), 4u * placement.shard_elements);
  auto second = static_cast<std::int64_t>(layout.entry("slot.1").bytes() / 4);
  EXPECT_LT(second - (placement.shard_elements - of_muon), 16 * static_cast<std::int64_t>(placement.owned.size()));
  EXPECT_GE(static_cast<std::int64_t>(matrices_layout(config, placement, 0).entry("sent").bytes() / 4), of_muon);
  auto layouts = cell_layouts(config, placement);
  EXPECT_TRUE(std::any_of(layouts.begin(), layouts.end(), [](const Layout& one) { return one.name == "matrices.0"; }));
}

TEST(Layouts, StateHasReductionsWhereAnOptimizerAsksForThem) {
  config::Config config = two_ranks();
  config.optimizer.groups["rest"].optimizer = "adamw";
  config.optimizer.name = "muon";
  EXPECT_FALSE(state_layout(placement::build(config, 0, builtin_facts()), 0).has("reductions"));
  config.optimizer.name = "muonclip";
  Layout layout = state_layout(placement::build(config, 1, builtin_facts()), 0);
  EXPECT_EQ(layout.entry("reductions").bytes(), 8u * config.model.layers * config.model.heads);
}

TEST(Layouts, WorkingCopyHasTheFormatOfTheWire) {
  config::Config config = two_ranks();
  placement::Placement placement = placement::build(config, 0);
  EXPECT_EQ(working_layout(config, placement).entry("values").bytes(), 4u * placement.shard_elements);
  config.wire.dense_gather = config.wire.expert_gather = config::ParameterWire::bf16;
  EXPECT_EQ(working_layout(config, placement).entry("values").bytes(), 2u * placement.shard_elements);
  config.wire.expert_gather = config::ParameterWire::fp8;
  EXPECT_EQ(working_layout(config, placement).entry("values").bytes(),
            static_cast<std::uint64_t>(wire::working_form(config, placement).bytes));
  EXPECT_LT(working_layout(config, placement).entry("values").bytes(), 2u * placement.shard_elements);
}

TEST(Layouts, ArenaHoldsOneSlotForEveryRowOfEveryOffloadedLayer) {
  config::Config config = two_ranks();
  placement::Placement placement = placement::build(config, 0);
  EXPECT_EQ(arena_layout(config, placement).entry("values").bytes(), 0u);
  config.offload.fraction = 0.34;  // 1.02 layers
  std::uint64_t slot = 256 * 64 * 4;
  EXPECT_EQ(arena_layout(config, placement).entry("values").bytes(), 2 * 2 * slot);
  config.compute.dtype = config::Dtype::bf16;
  EXPECT_EQ(arena_layout(config, placement).entry("values").bytes(), 2 * 2 * slot / 2);
}

TEST(Layouts, ArenaIsAsLargeAsThePlanNeedsIt) {
  config::Config config = two_ranks();
  for (double fraction : {0.0, 0.3, 0.5, 1.0}) {
    config.offload.fraction = fraction;
    placement::Placement placement = placement::build(config, 1);
    plan::StepPlan plan = plan::build(config, placement, plan::PlanKind::train);
    EXPECT_EQ(arena_layout(config, placement).entry("values").bytes(), static_cast<std::uint64_t>(plan.arena_bytes));
  }
}

TEST(Layouts, OffloadedLayersAreNotOneMoreThroughRounding) {
  config::Config config;
  config.model.layers = 100;
  for (int percent = 0; percent <= 100; ++percent) {
    config.offload.fraction = percent / 100.0;
    EXPECT_EQ(plan::offloaded_layers(config), percent);
  }
}

TEST(Layouts, BatchesHoldTheRowsOfThisRankAndItsHeldOutRowsOnce) {
  config::Config config = two_ranks();
  Layout layout = batches_layout(config, placement::build(config, 1));
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(layout.entry("words").shape, Shape{3});
  EXPECT_EQ(layout.entry("header").shape, (Shape{3, 8}));
  EXPECT_EQ(layout.entry("documents").shape, (Shape{3, 2, 256}));
  EXPECT_EQ(layout.entry("validation_words").shape, Shape{1});
  EXPECT_EQ(layout.entry("validation_targets").shape, (Shape{1, 3, 256}));
}

TEST(Layouts, SideHoldsAShareOfTheChunksButNeverFewerThanFourImages) {
  config::Config config = two_ranks();
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  Layout layout = side_layout(config, placement, 0);
  EXPECT_EQ(layout.entry("read_marks").bytes(), 8 * placement.chunks.size());
  EXPECT_EQ(layout.entry("images").shape[1], 3);
  EXPECT_GE(side_slots(config, placement), 4);
  config.checkpoint.side_fraction = 1.0;
  EXPECT_EQ(side_slots(config, placement),
            static_cast<std::int64_t>(std::max<std::size_t>(placement.chunks.size(), 4)));
}

}  // namespace
}  // namespace ganymede::shm
