#include "common/step_protocol/change.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "common/base/barrier.h"
#include "common/base/error.h"

namespace ganymede::step_protocol {

Setting sealed(Setting setting) {
  setting.checksum = setting.compute_checksum();
  return setting;
}

bool same_values(const Setting& one, const Setting& other) {
  auto groups = [](const Setting& setting) { return std::span(setting.groups, setting.group_count); };
  auto same_group = [](const GroupValues& a, const GroupValues& b) {
    return a.lr == b.lr && a.weight_decay == b.weight_decay;
  };
  return one.lr == other.lr && one.weight_decay == other.weight_decay && one.clip_norm == other.clip_norm &&
         one.state_epoch == other.state_epoch && one.hyper_count == other.hyper_count &&
         std::ranges::equal(groups(one), groups(other), same_group) &&
         std::equal(std::begin(one.hyper), std::end(one.hyper), std::begin(other.hyper));
}

void prepare(ControlBlock& block, const Setting& setting) {
  std::uint64_t prepared = block.prepared_change.load(std::memory_order_acquire);
  Setting& slot = block.settings[setting.number % setting_slots];
  bool there = prepared == setting.number && slot.number == setting.number && slot.intact();
  if (there || setting.number < prepared) return;
  slot = sealed(setting);
  block.prepared_change.store(setting.number, std::memory_order_release);
}

std::optional<Setting> find_setting(const ControlBlock& block, std::uint64_t number) {
  Setting setting = block.settings[number % setting_slots];
  if (setting.number != number || !setting.intact()) return std::nullopt;
  return setting;
}

Setting setting_of(const ControlBlock& block, std::uint64_t number) {
  std::optional<Setting> setting = find_setting(block, number);
  if (!setting)
    fail(
        "The setting of change {} does not lie whole in the cell: start the same command again, it goes on from the "
        "last checkpoint",
        number);
  return *setting;
}

Setting offered_setting(const ControlBlock& block) {
  while (true) {
    std::uint64_t number = block.prepared_change.load(std::memory_order_acquire);
    Setting setting = setting_of(block, number);
    full_barrier();
    if (block.prepared_change.load(std::memory_order_relaxed) == number) return setting;
  }
}

void refuse(ControlBlock& block, std::uint64_t number) {
  std::uint64_t newest = block.refused_change.load(std::memory_order_acquire);
  while (newest < number && !block.refused_change.compare_exchange_weak(newest, number)) continue;
}

namespace {

/// The newest decided one; nothing before the first step.
std::optional<DecisionRecord> newest_record(const ControlBlock& block) {
  while (true) {
    std::uint64_t step = block.decided_step.load(std::memory_order_acquire);
    DecisionRecord record = block.record_of(step);
    full_barrier();
    // Its slot is not written before the next step is decided.
    if (block.decided_step.load(std::memory_order_relaxed) != step) continue;
    if (step == 0 || record.step != step || !record.intact()) return std::nullopt;
    return record;
  }
}

}  // namespace

InForce in_force(const ControlBlock& block) {
  std::optional<DecisionRecord> newest = newest_record(block);
  return newest ? InForce{newest->change_number, newest->change_step} : InForce{};
}

std::uint64_t epoch_in_force(const ControlBlock& block) {
  std::optional<DecisionRecord> newest = newest_record(block);
  return newest ? newest->state_epoch : 0;
}

}  // namespace ganymede::step_protocol
