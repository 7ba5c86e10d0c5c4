#include "services/checkpoint/checkpoint_view.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "common/base/error.h"

namespace ganymede::checkpoint {
namespace {

constexpr std::size_t most_open = 16;  // databases at once

auto order(const Key& key) { return std::tie(key.slot, key.parameter, key.first); }

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (std::int64_t size : shape) product *= size;
  return product;
}

}  // namespace

CheckpointView::CheckpointView(std::string folder, service::Manifest manifest, const std::function<void()>& opened)
    : folder_(std::move(folder)), manifest_(std::move(manifest)) {
  for (const service::Manifest::Part& listed : manifest_.parts) {
    std::string where = fmt::format("rank.{}", listed.rank);
    try {
      const PartRecord& record = part(listed.rank).record();
      if (record.hash() != listed.hash || record.rank != listed.rank || record.step != manifest_.step) {
        damage_.push_back({where, "its list of values is not the one that the manifest names"});
      }
      take(record, listed.rank);
    } catch (const Error& error) {
      damage_.push_back({where, error.what()});
    }
    if (opened) opened();
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return order(a.key) < order(b.key); });
  if (damage_.empty()) find_gaps();
}

void CheckpointView::take(const PartRecord& record, int rank) {
  for (const PartRecord::Value& value : record.values) {
    entries_.push_back({value.key, value.count, rank});
  }
  shapes_.insert(record.shapes.begin(), record.shapes.end());
  began_.insert(record.began.begin(), record.began.end());
  row_slots_.insert(record.row_slots.begin(), record.row_slots.end());
}

void CheckpointView::find_gaps() {
  for (const std::string& slot : slots()) {
    for (const auto& [parameter, shape] : shapes_) {
      // No state of this name: the parameter's optimizer has none. That no list of values is cut short, its hash says.
      if (slot != master_slot && entries(slot, parameter).empty()) continue;
      std::int64_t next = 0;
      for (const Entry& entry : entries(slot, parameter)) {
        if (entry.key.first != next) break;
        next += entry.count;
      }
      bool rows = per_row(slot, parameter);
      if (next == (rows ? shape.front() : elements(shape))) continue;
      damage_.push_back({fmt::format("{}/{}", slot, parameter),
                         fmt::format("no part holds its {} {}", rows ? "row" : "element", next)});
    }
  }
}

std::span<const CheckpointView::Entry> CheckpointView::entries(const std::string& slot,
                                                               const std::string& parameter) const {
  Key wanted{slot, parameter, 0};
  auto first = std::lower_bound(entries_.begin(), entries_.end(), wanted,
                                [](const Entry& entry, const Key& key) { return order(entry.key) < order(key); });
  auto last = first;
  while (last != entries_.end() && last->key.slot == slot && last->key.parameter == parameter) ++last;
  return {first, last};
}

std::vector<std::string> CheckpointView::slots() const {
  std::set<std::string> names;
  for (const Entry& entry : entries_) names.insert(entry.key.slot);
  return {names.begin(), names.end()};
}

bool CheckpointView::per_row(const std::string& slot, const std::string& parameter) const {
  auto found = row_slots_.find(parameter);
  return found != row_slots_.end() && std::ranges::find(found->second, slot) != found->second.end();
}

std::uint64_t CheckpointView::bytes() const {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_) sum += static_cast<std::uint64_t>(entry.count) * sizeof(float);
  return sum;
}

PartReader& CheckpointView::part(int rank) {
  auto found = open_.find(rank);
  if (found != open_.end()) return *found->second;
  if (open_.size() >= most_open) open_.erase(open_.begin());
  return *open_.emplace(rank, std::make_unique<PartReader>(folder_, rank, manifest_.step)).first->second;
}

std::string CheckpointView::read(const Entry& entry, rocksdb::PinnableSlice& bytes) {
  bytes.Reset();  // it may pin memory of a part that is closed now
  try {
    return part(entry.rank).read(entry.key, entry.count, bytes);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string place(const CheckpointView::Entry& entry) {
  return fmt::format("rank.{}/{}", entry.rank, encode(entry.key));
}

CheckpointView open_checkpoint(const std::string& folder, std::uint64_t step, const std::function<void()>& opened) {
  std::string checkpoints = service::find_checkpoints(folder);
  return {checkpoints, service::choose_manifest(service::find_manifests(checkpoints), checkpoints, step), opened};
}

}  // namespace ganymede::checkpoint
