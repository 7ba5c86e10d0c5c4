#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/step_protocol/change.h"
#include "common/step_protocol/swap.h"
#include "services/optimizer/migration.h"
#include "tests/unit/optimizer/cell.h"

/// The server of the next state epoch beside the one in force: it takes over slots, follows steps, takes over.
namespace ganymede::optimizer {
namespace {

namespace sp = step_protocol;

EpochState state_of(Cell& cell) {
  return {&cell.placement, tables_of(cell.config), cell.memory.state, cell.memory.began};
}

/// A cell that trains with one optimizer, and the memory of the next epoch with another.
class Swap {
 public:
  Swap(const config::Config& old_config, const config::Config& new_config) : old(old_config), next(new_config) {
    CellMemory own = next.memory;
    next.memory = old.memory;
    next.memory.words = own.words;
    next.memory.state = own.state;
    next.memory.began = own.began;
    next.memory.redo = own.redo;
    next.memory.strips = own.strips;
    next.memory.sent = own.sent;
    next.memory.returned = own.returned;
    next.memory.matrices_sent = own.matrices_sent;
    next.memory.matrices_returned = own.matrices_returned;
    next.memory.read_marks = own.read_marks;
    next.memory.image_flags = own.image_flags;
    next.memory.images = own.images;
    next.epoch = 1;
    sp::Setting setting;
    setting.number = 1;
    setting.state_epoch = 1;
    setting.lr = 1e-2;
    setting.group_count = next.placement.update.groups.size() - 1;
    for (std::size_t i = 0; i < setting.group_count; i++) setting.groups[i] = {-1, -1};
    std::vector<double> hyper = default_hyper(new_config);
    setting.hyper_count = hyper.size();
    std::ranges::copy(hyper, setting.hyper);
    sp::prepare(*old.memory.control, setting);
  }

  /// The next step as the record of a worker; `edit` makes it one of a swap.
  sp::DecisionRecord& decide(bool apply, const std::function<void(sp::DecisionRecord&)>& edit) {
    old.decide({.apply = apply});
    sp::ControlBlock& control = *old.memory.control;
    sp::DecisionRecord& record = control.record_of(control.decided_step.load());
    edit(record);
    record.checksum = record.compute_checksum();
    return record;
  }
  /// A step that the old optimizer applies.
  void plain() {
    decide(true, [](auto&) {});
    apply_old();
  }
  /// The step whose record first names the swap: its state is what the new epoch begins with.
  void begin() {
    const auto& record = decide(true, [&](sp::DecisionRecord& each) {
      swap_step_ = each.step;
      each.swap_change = 1;
      each.swap_step = each.step;
    });
    apply_old();
    migrate(state_of(old), state_of(next), record.updates);
    next.memory.words->chunks_done = record.step * next.chunks();
  }
  void follow(bool apply = true) {
    decide(apply, [&](sp::DecisionRecord& record) {
      record.swap_change = 1;
      record.swap_step = swap_step_;
    });
    apply_old();
  }
  /// A step that the new optimizer applies.
  void take_over() {
    sp::Setting setting = sp::setting_of(*old.memory.control, 1);
    decide(true, [&](sp::DecisionRecord& record) {
      record.change_number = record.state_epoch = 1;
      record.group_count = next.placement.update.groups.size();
      for (std::size_t i = 0; i < record.group_count; i++) record.groups[i] = {record.lr, 0.1};
      record.hyper_count = setting.hyper_count;
      std::copy_n(setting.hyper, setting.hyper_count, record.hyper);
    });
  }
  void apply_old() {
    UpdateEngine engine = old.engine();
    old.finish_with_matrices(engine);
  }
  void apply_new() {
    UpdateEngine engine = next.engine();
    next.finish_with_matrices(engine);
  }

  Cell old, next;

 private:
  std::uint64_t swap_step_ = 0;
};

float largest_step(std::span<const float> before, std::span<const float> after, double lr) {
  float largest = 0;
  for (std::size_t i = 0; i < before.size(); i++) largest = std::max(largest, std::abs(after[i] - before[i]));
  return largest / static_cast<float>(lr);
}

/// A second moment that began with the swap is the one of a run that began there, on the same gradients.
TEST(Standby, FollowsTheStepsOfAnotherOptimizer) {
  Swap swap(Cell::muon_config(), Cell::small_config());
  Cell began_there(Cell::small_config());
  swap.plain();
  swap.begin();
  for (int i = 0; i < 2; i++) began_there.decide({.apply = false});
  for (int i = 0; i < 5; i++) {
    swap.follow(i != 2);
    swap.apply_new();
    EXPECT_EQ(swap.next.committed(), swap.old.committed());
  }
  UpdateEngine engine = began_there.engine();
  for (int i = 0; i < 2; i++) began_there.memory.words->chunks_done += began_there.chunks();
  for (int i = 0; i < 5; i++) {
    began_there.decide({.apply = i != 2});
    Cell::finish(engine);
  }
  bool compared = false;
  for (std::size_t i = 0; i < swap.next.placement.owned.size(); i++) {
    const placement::OwnedRange& range = swap.next.placement.owned[i];
    bool had = swap.old.placement.slots_of(range.parameter) == 2;
    if (had || swap.next.placement.parameters[range.parameter].update == model_spec::UpdateKind::selection_bias)
      continue;
    for (std::int64_t e = 0; e < range.count; e++, compared = true) {
      auto at = static_cast<std::size_t>(range.state_offset[1] + e);
      ASSERT_EQ(swap.next.memory.state[1][at], began_there.memory.state[1][at]);
    }
  }
  EXPECT_TRUE(compared);
}

TEST(Standby, ChangesNothingOfTheOptimizerInForce) {
  Swap swap(Cell::small_config(), Cell::muon_config()), alone(Cell::small_config(), Cell::muon_config());
  for (Swap* each : {&swap, &alone}) {
    each->plain();
    each->begin();
    for (int i = 0; i < 3; i++) {
      each->follow();
      if (each == &swap) each->apply_new();
    }
    each->plain();  // the swap was given up
  }
  EXPECT_EQ(swap.old.values(), alone.old.values());
  UpdateEngine engine = swap.next.engine();
  EXPECT_EQ(engine.advance().action.kind, sp::UpdateActionKind::await_decision);
  EXPECT_TRUE(engine.superseded());
}

/// Killed at every boundary of a followed step and of the step in which it takes over.
TEST(Standby, KilledAnywhereItGoesOnToTheSameBits) {
  config::Config adamw = Cell::small_config(), muon = Cell::muon_config(), normuon = Cell::normuon_config();
  for (const auto& [from, to] : {std::pair(adamw, muon), {muon, adamw}, {muon, normuon}, {normuon, adamw}}) {
    Swap undisturbed(from, to), killed(from, to);
    for (Swap* each : {&undisturbed, &killed}) {
      auto apply = [each, &killed] {
        each == &killed ? each->next.finish_with_deaths([](const auto&) {}) : each->apply_new();
      };
      each->plain();
      each->begin();
      each->follow();
      apply();
      each->take_over();
      apply();
    }
    EXPECT_EQ(killed.next.values().state, undisturbed.next.values().state);
    EXPECT_EQ(killed.old.values(), undisturbed.old.values()) << "master and working copy are those of both";
  }
}

/// There are no matrices to follow with: the state of rows is what the first steps in force make of it.
TEST(Standby, StateOfRowsBeginsWhenItTakesOver) {
  Swap swap(Cell::muon_config(), Cell::normuon_config());
  swap.plain();
  swap.begin();
  for (int i = 0; i < 3; i++) {
    swap.follow();
    swap.apply_new();
  }
  auto of_rows = [&](bool zero) {
    std::int64_t found = 0;
    for (const placement::OwnedRange& range : swap.next.placement.owned) {
      if (!swap.next.placement.per_row(range.parameter, 1)) continue;
      placement::StateRun run = swap.next.placement.state_run(range, 1),
                          momentum = swap.next.placement.state_run(range, 0),
                          old = swap.old.placement.state_run(range, 0);
      for (std::int64_t i = 0; i < run.count; i++) found += (swap.next.memory.state[1][run.offset + i] == 0) == zero;
      if (zero) {
        EXPECT_EQ(swap.next.memory.state[0][momentum.offset], swap.old.memory.state[0][old.offset]) << "followed";
      }
    }
    return found;
  };
  std::int64_t rows = of_rows(true);
  EXPECT_GT(rows, 100);
  swap.take_over();
  swap.apply_new();
  EXPECT_EQ(of_rows(false), rows);
}

TEST(Standby, TakesOverWhereTheRecordNamesItsEpochAndTheOldServerStops) {
  Swap swap(Cell::small_config(), Cell::muon_config());
  swap.begin();
  swap.follow();
  swap.apply_new();
  swap.take_over();
  Values before = swap.old.values();
  swap.apply_old();
  UpdateEngine old = swap.old.engine();
  EXPECT_EQ(old.advance().action.kind, sp::UpdateActionKind::await_decision);
  EXPECT_TRUE(old.superseded());
  EXPECT_EQ(swap.old.values(), before);
  swap.apply_new();
  EXPECT_EQ(swap.next.committed(), 3u);
  EXPECT_NE(swap.old.values().master, before.master);
  for (const auto& word : swap.next.memory.working_copy_ready) EXPECT_EQ(word, 3u);
}

/// AdamW → Muon → AdamW, as the second half: with the default warm-up, 1 / (1 − beta2) steps, no element moves further
/// than three learning rates in the first step; from a second moment of zero some move many times as far.
TEST(Standby, WarmSecondMomentKeepsTheFirstStepSmall) {
  auto first_step = [](int warm_steps) {
    Swap swap(Cell::muon_config(), Cell::small_config());
    for (int i = 0; i < 30; i++) swap.plain();
    swap.begin();
    for (int i = 0; i < warm_steps; i++) {
      swap.follow();
      swap.apply_new();
    }
    std::vector<float> before = swap.old.values().master;
    swap.take_over();
    swap.apply_new();
    return largest_step(before, swap.old.values().master, 1e-2);
  };
  EXPECT_LE(first_step(20), 3);
  EXPECT_GT(first_step(0), 10);
}

}  // namespace
}  // namespace ganymede::optimizer
