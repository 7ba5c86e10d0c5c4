#include <algorithm>
#include <numeric>

#include "common/plan/builder.h"

namespace ganymede::plan {
namespace {

bool in_pool(const Buffer& buffer) { return buffer.kind != BufferKind::arena; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// Lowest offset at which `bytes` fit between the places of buffers that live at the same time.
std::int64_t lowest_fit(const StepPlan& plan, const std::vector<Lifetime>& life, const std::vector<int>& placed,
                        int buffer) {
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // offset, end
  for (int other : placed) {
    if (meet(life[buffer], life[other])) {
      taken.emplace_back(plan.buffers[other].offset, plan.buffers[other].offset + plan.buffers[other].bytes);
    }
  }
  std::sort(taken.begin(), taken.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (at + plan.buffers[buffer].bytes <= begin) break;
    at = std::max(at, end);
  }
  return at;
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
  std::vector<int> pool, arena;
  for (int b : order) {
    Buffer& buffer = plan.buffers[b];
    std::vector<int>& placed = in_pool(buffer) ? pool : arena;
    std::int64_t& size = in_pool(buffer) ? plan.pool_bytes : plan.arena_bytes;
    buffer.offset = lowest_fit(plan, life, placed, b);
    size = std::max(size, buffer.offset + buffer.bytes);
    placed.push_back(b);
  }
  plan.peak_bytes = peak(plan);
}

}  // namespace ganymede::plan
