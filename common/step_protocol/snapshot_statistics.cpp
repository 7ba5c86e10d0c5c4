#include "common/step_protocol/snapshot_statistics.h"

#include <algorithm>
#include <iterator>

namespace ganymede::step_protocol {
namespace {

/// That of the same step, else a torn one, else the older one.
SnapshotStatistics& slot_for(ControlBlock& block, std::uint64_t step) {
  auto age = [step](const SnapshotStatistics& slot) {
    if (slot.step == step) return std::uint64_t{0};
    return slot.intact() ? slot.step + 2 : 1;
  };
  return *std::min_element(std::begin(block.snapshot_statistics), std::end(block.snapshot_statistics),
                           [&](const auto& one, const auto& other) { return age(one) < age(other); });
}

}  // namespace

void keep_statistics(ControlBlock& block, const DecisionRecord& record) {
  if (record.snapshot_after == 0) return;
  SnapshotStatistics kept{.step = record.step, .statistics = record.statistics, .updates = record.updates};
  kept.checksum = kept.compute_checksum();
  slot_for(block, record.step) = kept;
}

std::optional<SnapshotStatistics> kept_statistics(const ControlBlock& block, std::uint64_t step) {
  for (const SnapshotStatistics& slot : block.snapshot_statistics)
    if (step > 0 && slot.step == step && slot.intact()) return slot;
  return std::nullopt;
}

}  // namespace ganymede::step_protocol
