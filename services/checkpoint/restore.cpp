#include "services/checkpoint/restore.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "common/base/error.h"
#include "services/checkpoint/value.h"

namespace ganymede::checkpoint {
namespace {

[[noreturn]] void fail_damaged(const CheckpointView& view, const std::string& where, const std::string& reason) {
  fail(
      "The checkpoint of step {} in {} is damaged at {}: {}. See all of it with \"ganymede checkpoint verify {}\"; to "
      "go "
      "back to the checkpoint before it, remove {}.",
      view.manifest().step, view.folder(), where, reason, view.folder(), service::manifest_name(view.manifest().step));
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t size : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", size);
  return text;
}

void check_state(const CheckpointView& view, const placement::Placement& placement, int parameter) {
  const placement::OptimizerFacts& optimizer = placement.update.optimizer_of(parameter);
  const std::string& name = placement.parameters[static_cast<std::size_t>(parameter)].name;
  for (std::size_t i = 0; i < optimizer.slots.size(); ++i) {
    const std::string& slot = optimizer.slots[i];
    if (!view.entries(slot, name).empty() && view.per_row(slot, name) == optimizer.per_row(i)) continue;
    if (!view.entries(slot, name).empty()) {
      fail(
          "The checkpoint of step {} in {} was made with optimizer {} and holds {} of {} by {}, and optimizer {} has "
          "it by {}; go on with the optimizer it was made with.",
          view.manifest().step, view.folder(), view.manifest().optimizer, slot, name,
          optimizer.per_row(i) ? "element" : "row", optimizer.name, optimizer.per_row(i) ? "row" : "element");
    }
    fail(
        "The checkpoint of step {} in {} was made with optimizer {} and holds {}, but not the {} that optimizer {} "
        "needs of {}; go on with the optimizer it was made with.",
        view.manifest().step, view.folder(), view.manifest().optimizer, joined(view.slots()), slot, optimizer.name,
        name);
  }
}

void check_fits(const CheckpointView& view, const placement::Placement& placement) {
  for (const placement::OwnedRange& range : placement.owned) {
    const model_spec::ParameterSpec& parameter = placement.parameters[range.parameter];
    auto found = view.shapes().find(parameter.name);
    if (found == view.shapes().end()) {
      fail("The checkpoint of step {} in {} does not hold {}; it is of another model.", view.manifest().step,
           view.folder(), parameter.name);
    }
    if (found->second == parameter.shape) {
      check_state(view, placement, range.parameter);
      continue;
    }
    fail("{} is {} in the checkpoint of step {} in {} and {} in the configuration; it is of another model.",
         parameter.name, shape_text(found->second), view.manifest().step, view.folder(), shape_text(parameter.shape));
  }
}

using Copied = std::function<void(std::uint64_t bytes)>;

/// Copies the elements, or rows, [first, first + values.size()) of a parameter.
void fill(CheckpointView& view, const std::string& slot, const std::string& parameter, std::int64_t first,
          std::span<float> values, const Copied& copied) {
  std::int64_t next = first, end = first + static_cast<std::int64_t>(values.size());
  rocksdb::PinnableSlice bytes;
  for (const CheckpointView::Entry& entry : view.entries(slot, parameter)) {
    if (entry.key.first + entry.count <= next || next == end) continue;
    if (entry.key.first > next) break;
    std::string damage = view.read(entry, bytes);
    if (!damage.empty()) fail_damaged(view, place(entry), damage);
    std::int64_t count = std::min(end, entry.key.first + entry.count) - next;
    auto data = data_of({bytes.data(), bytes.size()});
    std::memcpy(values.data() + (next - first), data.data() + (next - entry.key.first) * sizeof(float),
                static_cast<std::size_t>(count) * sizeof(float));
    next += count;
    copied(static_cast<std::uint64_t>(count) * sizeof(float));
  }
  if (next != end) {
    fail_damaged(view, fmt::format("{}/{}", slot, parameter), fmt::format("no part holds its element {}", next));
  }
}

/// Slots that the checkpoint says nothing of began with the run.
void fill_began(const CheckpointView& view, const placement::Placement& placement, std::span<std::uint64_t> began) {
  if (began.empty()) return;
  std::ranges::fill(began, std::uint64_t{0});
  for (std::size_t i = 0; i < placement.parameters.size(); ++i) {
    auto found = view.began().find(placement.parameters[i].name);
    if (found == view.began().end()) continue;
    std::size_t count = std::min(found->second.size(), placement.slots_of(static_cast<int>(i)));
    std::copy_n(found->second.begin(), count,
                began.begin() + static_cast<std::ptrdiff_t>(i * placement.columns.size()));
  }
}

}  // namespace

void restore(CheckpointView& view, const placement::Placement& placement, const CellArrays& arrays,
             const Progress& progress) {
  if (!view.damage().empty()) fail_damaged(view, view.damage().front().where, view.damage().front().reason);
  check_fits(view, placement);
  fill_began(view, placement, arrays.began);
  std::uint64_t done = 0, total = 0;
  for (const placement::OwnedRange& range : placement.owned) {
    total += static_cast<std::uint64_t>(range.count) * sizeof(float);
    for (std::size_t i = 0; i < placement.slots_of(range.parameter); ++i)
      total += static_cast<std::uint64_t>(placement.state_run(range, i).count) * sizeof(float);
  }
  auto copied = [&](std::uint64_t bytes) { progress(done += bytes, total); };
  for (const placement::OwnedRange& range : placement.owned) {
    const std::string& name = placement.parameters[range.parameter].name;
    fill(view, master_slot, name, range.first, arrays.master.subspan(range.shard_offset, range.count), copied);
    const std::vector<std::string>& slots = placement.update.optimizer_of(range.parameter).slots;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      placement::StateRun run = placement.state_run(range, i);
      bool per_row = placement.per_row(range.parameter, i);
      std::int64_t first = per_row ? placement.rows_in(range.parameter, range.first, range.count).first : range.first;
      fill(view, slots[i], name, first, arrays.state[i].subspan(run.offset, run.count), copied);
    }
  }
}

}  // namespace ganymede::checkpoint
