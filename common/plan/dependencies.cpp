#include <algorithm>
#include <functional>
#include <utility>

#include "common/plan/builder.h"

namespace ganymede::plan {
namespace {

using Clock = std::vector<int>;  // per lane: the last operation known to be complete, -1 for none

int lane_of(const StepPlan& plan, int operation) { return static_cast<int>(plan.operations[operation].lane); }

void merge(Clock& into, const Clock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// What is complete once `operation` is.
Clock with(const StepPlan& plan, const std::vector<Clock>& known, int operation) {
  Clock clock = known[operation];
  clock[lane_of(plan, operation)] = operation;
  return clock;
}

std::vector<int> touched(const Operation& operation) {
  std::vector<int> all = operation.takes;
  all.insert(all.end(), operation.uses.begin(), operation.uses.end());
  all.insert(all.end(), operation.frees.begin(), operation.frees.end());
  return all;
}

/// Keeps of `wanted` what lane order and the others do not already imply.
std::vector<int> prune(const StepPlan& plan, const std::vector<Clock>& known, Clock& clock, std::vector<int> wanted) {
  std::sort(wanted.begin(), wanted.end(), std::greater<>());
  std::vector<int> kept;
  for (int d : wanted) {
    if (clock[lane_of(plan, d)] >= d) continue;
    kept.push_back(d);
    merge(clock, with(plan, known, d));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

void complete_dependencies(StepPlan& plan) {
  Clock nothing(lane_count, -1);
  std::vector<Clock> known;
  std::vector<Clock> users(plan.buffers.size(), nothing);  // per buffer and lane: the last operation that touched it
  Clock last = nothing, frees = nothing;                   // per lane: the last operation; the last that frees
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    Operation& operation = plan.operations[i];
    int lane = lane_of(plan, i);
    std::vector<int> wanted = std::move(operation.after);
    for (int f : frees) {
      if (f >= 0) wanted.push_back(f);
    }
    for (int b : touched(operation)) {
      for (int user : users[b]) {
        if (user >= 0) wanted.push_back(user);
      }
    }
    for (int b : touched(operation)) users[b][lane] = i;
    Clock clock = last[lane] < 0 ? nothing : with(plan, known, last[lane]);
    operation.after = prune(plan, known, clock, std::move(wanted));
    known.push_back(clock);
    last[lane] = i;
    if (!operation.frees.empty()) frees[lane] = i;
  }
}

std::vector<std::vector<int>> known_complete(const StepPlan& plan) {
  Clock last(lane_count, -1);
  std::vector<Clock> known;
  for (int i = 0; i < static_cast<int>(plan.operations.size()); ++i) {
    int lane = lane_of(plan, i);
    Clock clock = last[lane] < 0 ? Clock(lane_count, -1) : with(plan, known, last[lane]);
    for (int d : plan.operations[i].after) merge(clock, with(plan, known, d));
    known.push_back(clock);
    last[lane] = i;
  }
  return known;
}

}  // namespace ganymede::plan
