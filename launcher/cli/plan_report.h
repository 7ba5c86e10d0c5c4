#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/plan/cost/cost_table.h"
#include "common/plan/timeline.h"

namespace ganymede::cli {

/// What is asked for.
struct PlanRequest {
  std::string recipe;
  std::vector<std::string> settings;  // "key=value"
  int rank = 0;
  std::string hardware, measured;  // a file, or none; not both
};

/// Where durations come from, read once and used for both plans of a comparison.
struct Durations {
  std::optional<plan::Hardware> hardware;
  std::string measured;  // file
  std::string source;    // "gh200", "operations.0.json (7 steps)"; empty: no durations
  bool known() const { return !source.empty(); }
};
/// Throws Error(usage) for a file that cannot be used.
Durations read_durations(const PlanRequest& request);

/// The plan of one step on one rank, and what follows from it.
struct PlanReport {
  std::string recipe, durations;      // `durations` as Durations::source
  std::vector<std::string> settings;  // "key=value"
  config::Config config;
  placement::Placement placement;
  plan::StepPlan plan;
  plan::TrafficChoices choices;
  std::vector<plan::Moved> moved;  // by operation: what it sends
  std::vector<plan::TrafficLine> traffic;

  std::string state_unknown;  // why the optimizer's state is not known; empty: it is
  struct SegmentSize {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::vector<SegmentSize> segments;  // shared memory of the cell

  /// What the plan needs of a memory whose size a hardware file gives.
  struct MemoryUse {
    std::string memory;             // "device", "host of a node"
    double used = 0, capacity = 0;  // bytes
    int ranks = 1;                  // that need it together
    bool with_state = false;        // the optimizer's state lies in it
    bool fits() const { return used <= capacity; }
  };
  std::vector<MemoryUse> memory_uses;
  bool pool_in_device = false;  // the devices have memory of their own: the pool is not part of the host's

  // With durations only.
  std::vector<plan::Span> spans;
  std::array<plan::LaneUse, plan::lane_count> lanes{};
  std::vector<plan::Interval> exposed;
  double step_ms = 0;            // to the end of the last span
  double update_ms = 0;          // of the optimizer, beside the plan; 0 with measured durations
  double update_exposed_ms = 0;  // of the step: what it would be shorter without updates
  double peak_gflops = 0;        // of one device in the type that is computed with; 0: not known
  double flops_utilisation = 0;  // model flops of the step by what all devices could do in it

  bool timed() const { return !durations.empty(); }
  double tokens_per_step() const { return static_cast<double>(config.data.rows_per_step) * config.data.seq_len; }
  double tokens_per_second() const { return tokens_per_step() / step_ms * 1e3; }  // all ranks
};

/// Throws Error(usage) as config::load and plan::build do.
PlanReport make_report(const PlanRequest& request, const Durations& durations);

/// "layer.7.experts", "layer.7 row 0", "head row 0"; empty for what is of the whole step.
std::string subject(const PlanReport& report, const plan::Operation& operation);

}  // namespace ganymede::cli
