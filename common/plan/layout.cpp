#include <algorithm>
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

void lay_out_buffers(StepPlan& plan) {
  std::vector<Lifetime> life = lifetimes(plan);
  std::vector<int> order(plan.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return plan.buffers[a].bytes > plan.buffers[b].bytes; });
  std::vector<Placed> pool, arena;
  for (int b : order) {
    Buffer& buffer = plan.buffers[b];
    std::vector<Placed>& placed = in_pool(buffer) ? pool : arena;
    std::int64_t& size = in_pool(buffer) ? plan.pool_bytes : plan.arena_bytes;
    buffer.offset = lowest_fit(placed, life[b], buffer.bytes);
    size = std::max(size, buffer.offset + buffer.bytes);
    keep_in_order(placed, {buffer.offset, buffer.offset + buffer.bytes, life[b]});
  }
  plan.peak_bytes = peak(plan);
}

}  // namespace ganymede::plan
