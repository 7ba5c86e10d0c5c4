#include "services/optimizer/migration.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/base/error.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

/// The state of a rank with an optimizer in plain memory, each element with a value of its own.
struct State {
  State(const config::Config& config, float base, int rank = 0) : placement(Cell(config, 6, rank).placement) {
    for (std::int64_t elements : placement.columns) {
      columns.emplace_back(static_cast<std::size_t>(elements));
      for (float& value : columns.back()) value = base++;
    }
    began.resize(placement.parameters.size() * columns.size());
    view = {&placement, tables_of(config), {}, began};
    for (auto& column : columns) view.columns.emplace_back(column);
  }
  /// Of one element of the rank, by its place in `owned`.
  float at(std::size_t owned, std::size_t column, std::int64_t element) const {
    return columns[column][static_cast<std::size_t>(placement.owned[owned].state_offset[column] + element)];
  }
  placement::Placement placement;
  std::vector<std::vector<float>> columns;
  std::vector<std::uint64_t> began;
  EpochState view;
};

config::Config with(const char* name) {
  config::Config config = Cell::small_config();
  config.optimizer.name = name;
  if (config.optimizer.name.ends_with("muon")) config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

TEST(Migration, SlotsOfTheSameMeaningGoOverElementByElement) {
  State from(with("adamw"), 1), to(with("muon"), -1e6f);
  migrate(from.view, to.view, 70);
  for (std::size_t i = 0; i < to.placement.owned.size(); ++i) {
    const placement::OwnedRange& range = to.placement.owned[i];
    std::size_t slots = to.placement.slots_of(range.parameter);
    for (std::size_t column = 0; column < slots; ++column)
      for (std::int64_t e = 0; e < range.count; ++e) ASSERT_EQ(to.at(i, column, e), from.at(i, column, e));
  }
}

TEST(Migration, WhatTheOldOptimizerDoesNotHaveBeginsWithZeroAndAgeZero) {
  State from(with("muon"), 1), to(with("adamw"), -1e6f);
  for (std::uint64_t& word : from.began) word = 5;
  migrate(from.view, to.view, 70);
  bool matrices = false;
  for (std::size_t i = 0; i < to.placement.owned.size(); ++i) {
    const placement::OwnedRange& range = to.placement.owned[i];
    bool had = from.placement.slots_of(range.parameter) == 2;
    matrices |= !had;
    for (std::int64_t e = 0; e < range.count; ++e) {
      ASSERT_EQ(to.at(i, 0, e), from.at(i, 0, e));
      ASSERT_EQ(to.at(i, 1, e), had ? from.at(i, 1, e) : 0.0f);
    }
    EXPECT_EQ(to.view.began_of(range.parameter, 0), 5u) << "the momentum keeps its age";
    EXPECT_EQ(to.view.began_of(range.parameter, 1), had ? 5u : 70u);
    EXPECT_EQ(youngest_began(to.view, range.parameter), had ? 5u : 70u);
  }
  EXPECT_TRUE(matrices);
}

TEST(Migration, ThereAndBackKeepsTheMomentumAndItsAge) {
  State first(with("adamw"), 1), second(with("muon"), 0), third(with("adamw"), 0);
  migrate(first.view, second.view, 10);
  migrate(second.view, third.view, 20);
  for (std::size_t i = 0; i < first.placement.owned.size(); ++i)
    for (std::int64_t e = 0; e < first.placement.owned[i].count; ++e) ASSERT_EQ(third.at(i, 0, e), first.at(i, 0, e));
  for (int parameter = 0; parameter < static_cast<int>(first.placement.parameters.size()); ++parameter)
    EXPECT_EQ(third.view.began_of(parameter, 0), 0u);
}

TEST(Migration, DoneAgainAfterAKillItIsTheSame) {
  State from(with("muon"), 1), once(with("adamw"), 3), again(with("adamw"), 9);
  migrate(from.view, once.view, 7);
  for (int i = 0; i < 2; ++i) migrate(from.view, again.view, 7);
  EXPECT_EQ(again.columns, once.columns);
  EXPECT_EQ(again.began, once.began);
}

/// A sum of gradients is no mean of them: it would make the first step of another optimizer ten times too large.
TEST(Migration, SumOfGradientsIsNoMomentum) {
  State from(with("sgd"), 1), to(with("adamw"), 1);
  migrate(from.view, to.view, 7);
  for (float value : to.columns[0]) ASSERT_EQ(value, 0.0f);
}

TEST(Migration, SlotsOfRowsGoOverToSlotsOfRowsAlone) {
  State normuon(with("normuon"), 1), other(with("normuon"), -1e6f), adamw(with("adamw"), 1), muon(with("muon"), 1);
  auto rows = [&](const State& state, const placement::OwnedRange& range) {
    placement::StateRun run = state.placement.state_run(range, 1);
    return std::vector<float>(state.columns[1].begin() + run.offset, state.columns[1].begin() + run.offset + run.count);
  };
  for (const State* from : {&normuon, &adamw, &muon}) {
    migrate(from->view, other.view, 70);
    for (std::size_t i = 0; i < other.placement.owned.size(); ++i) {
      const placement::OwnedRange& range = other.placement.owned[i];
      if (!other.placement.per_row(range.parameter, 1)) continue;
      ASSERT_EQ(other.at(i, 0, range.count - 1), from->at(i, 0, range.count - 1)) << "the momentum";
      std::vector<float> none(static_cast<std::size_t>(other.placement.state_run(range, 1).count), 0.0f);
      ASSERT_EQ(rows(other, range), from == &normuon ? rows(normuon, normuon.placement.owned[i]) : none);
      EXPECT_EQ(other.view.began_of(range.parameter, 1), from == &normuon ? 0u : 70u);
    }
  }
}

TEST(Migration, OfAnotherRanksPartsIsRefused) {
  config::Config config = with("adamw");
  config.parallel.ranks = 2;
  State from(config, 1, 0), to(config, 1, 1);
  EXPECT_THROW(migrate(from.view, to.view, 7), Error);
}

}  // namespace
}  // namespace ganymede::optimizer
