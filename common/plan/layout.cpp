#include <algorithm>
#include <array>
#include <numeric>

#include "common/plan/builder.h"

namespace ganymede::plan {
namespace {

bool in_pool(const Buffer& buffer) { return buffer.kind != BufferKind::arena; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// A buffer that has its place. Plans have many thousands of them, each looked at for each: so they lie side by side.
struct Placed {
  std::int64_t begin, end;
  Lifetime life;
};

/// Lowest offset at which `bytes` fit between those of `placed` (in order of their begin) that live at the same time.
std::int64_t lowest_fit(const std::vector<Placed>& placed, const Lifetime& life, std::int64_t bytes) {
  std::int64_t at = 0;
  for (const Placed& other : placed) {
    if (at + bytes <= other.begin) break;
    if (meet(life, other.life)) at = std::max(at, other.end);
  }
  return at;
}

void keep_in_order(std::vector<Placed>& placed, const Placed& next) {
  auto lower = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
  placed.insert(std::upper_bound(placed.begin(), placed.end(), next, lower), next);
}

}  // namespace

std::vector<Lifetime> lifetimes(const StepPlan& plan) {
  std::vector<Lifetime> life(plan.buffers.size());
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    for (int b : plan.operations[i].takes) life[b].first = i;
    for (int b : plan.operations[i].frees) life[b].last = i;
  }
  return life;
}

std::int64_t peak(const StepPlan& plan) {
  std::int64_t alive = 0, most = 0;
  for (const Operation& operation : plan.operations) {
    for (int b : operation.takes) alive += in_pool(plan.buffers[b]) ? plan.buffers[b].bytes : 0;
    most = std::max(most, alive);
    for (int b : operation.frees) alive -= in_pool(plan.buffers[b]) ? plan.buffers[b].bytes : 0;
  }
  return most;
}

namespace {

/// Where a buffer lies: each part has its own offsets.
enum Region : std::size_t { computation, reductions, arena };

std::vector<Region> regions_of(const StepPlan& plan, bool reductions_apart) {
  std::vector<Region> regions;
  for (const Buffer& buffer : plan.buffers) {
    bool gradients = buffer.kind == BufferKind::gradients;
    regions.push_back(!in_pool(buffer) ? arena : gradients && reductions_apart ? reductions : computation);
  }
  for (const Operation& operation : plan.operations) {
    if (operation.lane != Lane::reduce || !reductions_apart) continue;
    for (int b : operation.takes) regions[b] = reductions;
  }
  return regions;
}

}  // namespace

void lay_out_buffers(StepPlan& plan, bool reductions_apart) {
  std::vector<Lifetime> life = lifetimes(plan);
  std::vector<Region> regions = regions_of(plan, reductions_apart);
  std::vector<int> order(plan.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return plan.buffers[a].bytes > plan.buffers[b].bytes; });
  std::array<std::vector<Placed>, 3> placed;
  std::array<std::int64_t, 3> size{};
  for (int b : order) {
    Buffer& buffer = plan.buffers[b];
    buffer.offset = lowest_fit(placed[regions[b]], life[b], buffer.bytes);
    size[regions[b]] = std::max(size[regions[b]], buffer.offset + buffer.bytes);
    keep_in_order(placed[regions[b]], {buffer.offset, buffer.offset + buffer.bytes, life[b]});
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (regions[b] == reductions) plan.buffers[b].offset += size[computation];
  }
  plan.pool_bytes = size[computation] + size[reductions];
  plan.arena_bytes = size[arena];
  plan.peak_bytes = peak(plan);
}

}  // namespace ganymede::plan
