#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "services/optimizer/plugin_commands.h"
#include "tests/support/tree.h"
#include "tests/unit/optimizer/cell.h"

/// An optimizer that asks to know something of the whole step.
namespace ganymede::optimizer {
namespace {

using model_spec::HeadRows;

config::Config muonclip_config() {
  config::Config config = Cell::muon_config();
  config.optimizer.name = "muonclip";
  return config;
}

TEST(Reductions, ProjectionsOfALayerSeeTheSameLogits) {
  Cell cell(muonclip_config());
  const placement::Reductions& all = cell.placement.reductions;
  int projections = 0;
  for (std::size_t i = 0; i < cell.placement.parameters.size(); i++) {
    const auto& parameter = cell.placement.parameters[i];
    auto* logits = all.find(placement::ReductionKind::attention_logit, static_cast<int>(i));
    EXPECT_EQ(all.find(placement::ReductionKind::gradient_square, static_cast<int>(i)), nullptr);
    bool projection = parameter.name.ends_with("q_proj.weight") || parameter.name.ends_with("k_proj.weight");
    EXPECT_EQ(logits != nullptr, projection) << parameter.name;
    if (!projection) continue;
    projections++;
    EXPECT_EQ(logits->first, parameter.layer * cell.config.model.heads);
    EXPECT_EQ(logits->count, cell.config.model.heads);
  }
  EXPECT_EQ(projections, 2 * cell.config.model.layers);
  EXPECT_EQ(all.elements, cell.config.model.layers * cell.config.model.heads);
  EXPECT_EQ(all.maxima, all.elements);
}

/// Against Muon in the same cell: each element times the factor of its head's row.
TEST(Reductions, ReachTheRowsOfTheirHeads) {
  Cell cell(muonclip_config()), plain(Cell::muon_config());
  UpdateEngine engine = cell.engine(), plain_engine = plain.engine();
  cell.decide();
  plain.decide();
  cell.finish_with_matrices(engine);
  plain.finish_with_matrices(plain_engine);
  int clipped = 0;
  for (const placement::OwnedRange& range : cell.placement.owned) {
    const auto& parameter = cell.placement.parameters[range.parameter];
    const HeadRows& heads = parameter.heads;
    for (std::int64_t i = 0; i < range.count; i += 5) {
      float ours = cell.memory.master[range.shard_offset + i], muon = plain.memory.master[range.shard_offset + i];
      if (heads.role == HeadRows::Role::none) {
        ASSERT_EQ(ours, muon) << parameter.name;
        continue;
      }
      auto gamma = [&](std::int64_t head) {
        double largest = cell.memory.reductions[parameter.layer * heads.query_heads + head];
        return std::min(1.0, 100 / largest);
      };
      std::int64_t head = (range.first + i) / parameter.row_elements() / heads.rows;
      std::int64_t group = heads.query_heads / heads.key_heads;
      std::int64_t key = heads.role == HeadRows::Role::key ? head : head / group;
      double smallest = 1;
      for (std::int64_t h = key * group; h < (key + 1) * group; h++) smallest = std::min(smallest, gamma(h));
      double factor = heads.role == HeadRows::Role::key ? std::sqrt(smallest) : gamma(head) / std::sqrt(smallest);
      clipped += factor < 1;
      ASSERT_NEAR(ours, muon * factor, 1e-7) << parameter.name << " element " << range.first + i;
    }
  }
  EXPECT_GT(clipped, 100);
}

TEST(Reductions, ServersThatDieAtEveryBoundaryReachTheSameBits) {
  auto expected = undisturbed_with_matrices(muonclip_config(), 3);
  Cell cell(muonclip_config());
  for (std::size_t step = 0; step < 3; step++) {
    cell.decide();
    std::uint64_t deaths = 0;
    cell.finish_with_deaths([&](const Cell::Death&) { deaths++; });
    EXPECT_GE(deaths, 4 * cell.tiles());
    EXPECT_TRUE(cell.values() == expected[step]) << "step " << step + 1;
  }
}

TEST(Reductions, DamagedOnesAreNotApplied) {
  Cell cell(muonclip_config());
  cell.decide();
  const_cast<double&>(cell.memory.reductions[3]) += 1;
  UpdateEngine engine = cell.engine();
  try {
    cell.finish_with_matrices(engine);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("reductions of step 1 are damaged: start again from the last"));
  }
}

TEST(Reductions, ArePartOfWhatAPluginSaysOfItself) {
  EXPECT_EQ(plugin("muonclip").facts("muonclip").reductions, std::vector<std::string>{"attention_logit"});
  EXPECT_TRUE(plugin("muon").facts("muon").reductions.empty());
  const std::string folder = GANYMEDE_BINARY_DIR "/plugins";
  EXPECT_THAT(describe_plugin(folder, "muonclip", false), testing::HasSubstr("reduction attention_logit"));
  EXPECT_THAT(describe_plugin(folder, "muonclip", false), testing::HasSubstr("optimizer.muonclip.threshold = 100"));
  EXPECT_THAT(describe_plugin(folder, "muonclip", true), testing::HasSubstr(R"("reductions":["attention_logit"])"));
  EXPECT_THAT(describe_plugin(folder, "adamw", true), testing::HasSubstr(R"("reductions":[])"));
}

}  // namespace
}  // namespace ganymede::optimizer
