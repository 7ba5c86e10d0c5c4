#include <algorithm>
#include <string>

#include "common/base/error.h"
#include "common/plan/builder.h"
#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

using Known = std::vector<std::vector<int>>;

/// Whether operation `b` starts only when `a` is complete.
bool ordered(const StepPlan& plan, const Known& known, int a, int b) {
  return known[b][static_cast<std::size_t>(plan.operations[a].lane)] >= a;
}

std::string describe(const StepPlan& plan, int i) {
  const Operation& o = plan.operations[i];
  return fmt::format("operation {} ({} layer {} bucket {} row {})", i, name(o.kind), o.layer, o.bucket, o.row);
}

void check_dependencies(const StepPlan& plan) {
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    for (int d : plan.operations[i].after) {
      GANYMEDE_CHECK(d >= 0 && d < i, "plan: {} waits for operation {}, which does not stand before it",
                     describe(plan, i), d);
    }
  }
}

/// Every free that stands before an operation is complete when it starts.
void check_order_of_frees(const StepPlan& plan, const Known& known) {
  std::vector<int> last(lane_count, -1);
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    for (int f : last) {
      GANYMEDE_CHECK(f < 0 || ordered(plan, known, f, i), "plan: {} may start before {} has freed its buffers",
                     describe(plan, i), f < 0 ? "" : describe(plan, f));
    }
    if (!plan.operations[i].frees.empty()) last[static_cast<std::size_t>(plan.operations[i].lane)] = i;
  }
}

/// Taken once, before every use; freed once, after every use.
void check_lives(const StepPlan& plan, const Known& known) {
  std::vector<int> taken(plan.buffers.size(), -1), freed(plan.buffers.size(), -1);
  std::vector<std::vector<int>> users(plan.buffers.size());
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    const Operation& operation = plan.operations[i];
    for (int b : operation.takes) {
      GANYMEDE_CHECK(taken[b] < 0, "plan: {} takes {} again", describe(plan, i), plan.buffers[b].name);
      taken[b] = i;
    }
    for (int b : operation.uses) users[b].push_back(i);
    for (int b : operation.frees) {
      GANYMEDE_CHECK(freed[b] < 0, "plan: {} frees {} again", describe(plan, i), plan.buffers[b].name);
      freed[b] = i;
    }
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const std::string& buffer = plan.buffers[b].name;
    GANYMEDE_CHECK(taken[b] >= 0 && freed[b] >= 0, "plan: {} is not both taken and freed", buffer);
    GANYMEDE_CHECK(taken[b] == freed[b] || ordered(plan, known, taken[b], freed[b]),
                   "plan: {} may be freed before it is taken", buffer);
    for (int user : users[b]) {
      GANYMEDE_CHECK(ordered(plan, known, taken[b], user), "plan: {} may use {} before it is taken",
                     describe(plan, user), buffer);
      GANYMEDE_CHECK(ordered(plan, known, user, freed[b]), "plan: {} may use {} after it is freed",
                     describe(plan, user), buffer);
    }
  }
}

void check_places(const StepPlan& plan) {
  std::vector<Lifetime> life = lifetimes(plan);
  for (std::size_t a = 0; a < plan.buffers.size(); ++a) {
    const Buffer& x = plan.buffers[a];
    bool arena = x.kind == BufferKind::arena;
    std::int64_t size = arena ? plan.arena_bytes : plan.pool_bytes;
    GANYMEDE_CHECK(x.offset >= 0 && x.offset % buffer_alignment == 0 && x.offset + x.bytes <= size,
                   "plan: {} lies outside its pool", x.name);
    for (std::size_t b = a + 1; b < plan.buffers.size(); ++b) {
      const Buffer& y = plan.buffers[b];
      if (arena != (y.kind == BufferKind::arena)) continue;
      bool apart = x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset;
      bool at_once = life[a].first <= life[b].last && life[b].first <= life[a].last;
      GANYMEDE_CHECK(apart || !at_once, "plan: {} and {} overlap while both are alive", x.name, y.name);
    }
  }
}

}  // namespace

void check(const StepPlan& plan) {
  check_dependencies(plan);
  Known known = known_complete(plan);
  check_order_of_frees(plan, known);
  check_lives(plan, known);
  check_places(plan);
  GANYMEDE_CHECK(peak(plan) == plan.peak_bytes && plan.peak_bytes <= plan.pool_bytes,
                 "plan: the peak is {} bytes, stated are {} of a pool of {}", peak(plan), plan.peak_bytes,
                 plan.pool_bytes);
}

}  // namespace ganymede::plan
