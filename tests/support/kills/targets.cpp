#include "tests/support/kills/targets.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "common/base/error.h"
#include "common/plan/plan.h"
#include "services/checkpoint/activity.h"
#include "services/data/operations.h"
#include "services/optimizer/operations.h"

namespace ganymede::test {
namespace {

using service::Kind;

/// The first, the middle and the last of what is there.
template <class T>
std::vector<T> three(const std::vector<T>& all) {
  std::vector<T> chosen;
  for (std::size_t i : {std::size_t{0}, all.size() / 2, all.size() - 1})
    if (i < all.size() && std::find(chosen.begin(), chosen.end(), all[i]) == chosen.end()) chosen.push_back(all[i]);
  return chosen;
}

template <class T>
void add_once(std::vector<T>& all, const T& one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

std::string bucket_name(const WatchedCell& cell, int bucket) {
  return bucket < 0 ? "" : " " + cell.placement().buckets[static_cast<std::size_t>(bucket)].name;
}

/// Where a rank holds a bucket whole, it is read and written in place: nothing is moved. Gathers that stream have
/// waited for all updates.
bool takes_time(const WatchedCell& cell, const plan::Operation& operation) {
  using plan::OperationKind;
  switch (operation.kind) {
    case OperationKind::release:
      return false;
    case OperationKind::wait_update:
      return !cell.config().stream_update;
    case OperationKind::gather:
    case OperationKind::reduce:
    case OperationKind::store_gradients:
      return !plan::in_place(cell.placement().buckets[static_cast<std::size_t>(operation.bucket)]);
    default:
      return true;
  }
}

KillTarget doing(Kind kind, const std::string& name, std::uint64_t operation) {
  return {kind, name, [=](const WatchedCell& cell) { return cell.operation(kind) == operation; }};
}

std::vector<KillTarget> thirds_of_reading() {
  constexpr std::uint64_t reading = static_cast<std::uint64_t>(checkpoint::Activity::reading);
  std::vector<KillTarget> targets;
  for (int third = 0; third < 3; ++third) {
    constexpr const char* names[] = {"reading, first third", "reading, middle third", "reading, last third"};
    targets.push_back({Kind::checkpoint, names[third], [third](const WatchedCell& cell) {
                         if (cell.operation(Kind::checkpoint) != reading || !cell.snapshot_armed()) return false;
                         return std::min(2, static_cast<int>(cell.snapshot_read() * 3)) == third;
                       }});
  }
  return targets;
}

void append(std::vector<KillTarget>& all, std::vector<KillTarget> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace

std::vector<KillTarget> worker_targets(const WatchedCell& cell) {
  std::map<plan::OperationKind, std::vector<int>> buckets;
  for (const auto& operation : plan::build(cell.config(), cell.placement(), plan::PlanKind::train).operations)
    if (takes_time(cell, operation)) add_once(buckets[operation.kind], operation.bucket);
  std::vector<KillTarget> targets;
  for (const auto& [kind, all] : buckets)
    for (int bucket : three(all)) {
      auto code = static_cast<std::uint64_t>(kind), of = static_cast<std::uint64_t>(bucket);
      bool any = all.size() == 1;
      targets.push_back({Kind::worker, plan::name(kind) + bucket_name(cell, bucket), [=](const WatchedCell& one) {
                           bool there = any || one.bucket(Kind::worker) == of;
                           return there && one.operation(Kind::worker) == code && !one.meets();
                         }});
    }
  if (cell.placement().world == 1) return targets;
  targets.push_back({.kind = Kind::worker,
                     .name = "exchange of a generation",
                     .holds = [](const WatchedCell& one) { return one.meets(); },
                     .while_starting = true});
  return targets;
}

std::vector<KillTarget> optimizer_targets(const WatchedCell& cell) {
  using placement::Phase;
  // Chunks of one bucket are counted together, second phases with what has one phase alone.
  std::map<bool, std::vector<int>> buckets;  // by whether it is a first phase
  for (const auto& chunk : cell.placement().chunks) add_once(buckets[chunk.phase == Phase::state], chunk.bucket);
  std::vector<KillTarget> targets;
  for (const auto& [first, all] : buckets)
    for (int bucket : three(all)) {
      std::string name = (first ? "first phase of" : "update of") + bucket_name(cell, bucket);
      targets.push_back({Kind::optimizer, name, [first = first, bucket](const WatchedCell& one) {
                           const placement::Chunk* chunk = one.updated_chunk();
                           return chunk != nullptr && (chunk->phase == Phase::state) == first &&
                                  chunk->bucket == bucket;
                         }});
    }
  targets.push_back(doing(Kind::optimizer, "waiting for a decision", optimizer::operation::awaiting_decision));
  if (buckets.contains(true))
    targets.push_back(doing(Kind::optimizer, "waiting for matrices", optimizer::operation::awaiting_matrices));
  return targets;
}

std::vector<KillTarget> data_targets(const WatchedCell& cell) {
  std::vector<std::uint64_t> slots;
  for (int slot = 0; slot < cell.config().data.slots; ++slot) slots.push_back(static_cast<std::uint64_t>(slot));
  std::vector<KillTarget> targets;
  for (std::uint64_t slot : three(slots))
    for (auto [code, name] : {std::pair(data::filling, "filling"), std::pair(data::waiting, "waiting")})
      targets.push_back({Kind::data, fmt::format("{}, slot {}", name, slot),
                         [slot, code = static_cast<std::uint64_t>(code), slots = slots.size()](const WatchedCell& one) {
                           return one.operation(Kind::data) == code && one.decided_step() % slots == slot;
                         }});
  targets.push_back(doing(Kind::data, "opening the dataset", data::opening));
  targets.back().while_starting = true;
  return targets;
}

std::vector<KillTarget> checkpoint_targets(const WatchedCell&) {
  using checkpoint::Activity;
  std::vector<KillTarget> targets = thirds_of_reading();
  auto add = [&](const char* name, Activity activity) {
    targets.push_back(doing(Kind::checkpoint, name, static_cast<std::uint64_t>(activity)));
  };
  add("idle", Activity::idle);
  add("writing", Activity::writing);
  add("committing", Activity::committing);
  targets.back().first_rank_alone = true;
  return targets;
}

std::vector<KillTarget> all_targets(const WatchedCell& cell) {
  std::vector<KillTarget> targets = worker_targets(cell);
  append(targets, optimizer_targets(cell));
  append(targets, data_targets(cell));
  append(targets, checkpoint_targets(cell));
  return targets;
}

}  // namespace ganymede::test
