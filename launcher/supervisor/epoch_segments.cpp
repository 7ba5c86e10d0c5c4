#include "launcher/supervisor/epoch_segments.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/placement/placement.h"
#include "launcher/supervisor/segment_memory.h"

namespace ganymede::launcher {
namespace {

Deadline soon() { return Deadline::after_seconds(10); }

/// "rank.3/state.2" is of epoch 2; nothing: of none.
std::optional<std::uint64_t> epoch_of(const std::string& held) {
  std::string name = held.substr(held.rfind('/') + 1);
  std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || held.find('/') == std::string::npos) return std::nullopt;
  std::uint64_t epoch = 0;
  auto read = std::from_chars(name.data() + dot + 1, name.data() + name.size(), epoch);
  return read.ec == std::errc() && read.ptr == name.data() + name.size() ? std::optional(epoch) : std::nullopt;
}

}  // namespace

EpochSegments::EpochSegments(Plan plan) : plan_(std::move(plan)) {
  making_ = std::async(std::launch::async, [this] { return make(); });
}

EpochSegments::~EpochSegments() {
  cancelled_ = true;
  if (making_.valid()) making_.wait();
}

bool EpochSegments::made() {
  if (!making_.valid()) return true;
  if (making_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  cells_ = making_.get();
  return true;
}

bool EpochSegments::give_up() {
  cancelled_ = true;
  return !making_.valid() || making_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

bool EpochSegments::ready(int rank) {
  if (cells_.empty()) return false;
  const Cell& cell = cells_.at(static_cast<std::size_t>(rank - plan_.ranks.first));
  return cell.control.ready->load(std::memory_order_acquire) == 1;
}

void EpochSegments::drop(const shm::KeeperClient& keeper, std::uint64_t epoch) {
  for (const auto& held : keeper.list(soon()))
    if (epoch_of(held.name) == epoch) keeper.drop(held.name, soon());
}

void EpochSegments::drop_all_but(const shm::KeeperClient& keeper, const std::vector<std::uint64_t>& epochs) {
  for (const auto& held : keeper.list(soon())) {
    auto epoch = epoch_of(held.name);
    if (epoch && std::ranges::find(epochs, *epoch) == epochs.end()) keeper.drop(held.name, soon());
  }
}

std::vector<EpochSegments::Cell> EpochSegments::make() const {
  if (plan_.prepare) plan_.prepare();
  const shm::KeeperClient& keeper = plan_.keeper;
  std::set<std::string> there;
  for (const auto& held : keeper.list(soon())) there.insert(held.name);
  std::uint64_t epoch = plan_.epoch.number;
  std::vector<NewCell> fresh;
  std::vector<Cell> cells;
  try {
    for (int i = 0; i < plan_.ranks.count; ++i) {
      int rank = plan_.ranks.first + i;
      auto placement = placement::build(plan_.config, rank, plan_.epoch.optimizers());
      NewCell cell{.local_rank = i, .segments = {}};
      for (const auto& layout : shm::epoch_layouts(plan_.config, placement, epoch)) {
        std::string name = shm::held_name(rank, layout.name);
        bool known = there.contains(name), state = layout.name == shm::state_name(epoch);
        if (known && !state) continue;
        os::Fd fd = known ? keeper.get(name, soon()) : keeper.create(name, layout.size, soon());
        if (state) {
          shm::Segment mapped = known ? shm::Segment::attach(fd.get(), layout, plan_.job)
                                      : shm::Segment::create(fd.get(), layout, plan_.job);
          service::EpochControl control = service::epoch_control_of(mapped);
          cells.push_back({std::move(mapped), control});
        }
        if (!known && !state) cell.segments.push_back(shm::Segment::create(fd.get(), layout, plan_.job));
        if (!known && state) cell.segments.push_back(shm::Segment::attach(fd.get(), layout, plan_.job));
      }
      fresh.push_back(std::move(cell));
    }
    place_segments(plan_.config, fresh, [this](std::uint64_t, std::uint64_t) {
      if (cancelled_) fail("The run ends.");
    });
  } catch (const Error&) {
    drop(keeper, epoch);
    throw;
  }
  return cells;
}

}  // namespace ganymede::launcher
