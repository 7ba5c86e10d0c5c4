#pragma once

#include <cstdint>
#include <string>

#include "common/step_protocol/step_statistics.h"

/// Which steps are not applied, decided before any state changes.
namespace ganymede::step_protocol {

struct DecisionRecord;

enum class SkipReason : std::uint64_t {
  none,
  non_finite,  // loss or gradients
  loss,        // outlying
  grad_norm,   // outlying
  stopping,    // the run ends because of a step before, as soon as its last checkpoint can be ordered
  listed,      // run.skip_steps names it: nobody has computed anything of it
};

/// What the configuration says about it (optimizer.policy, outlier_z, outlier_window).
struct SkipRules {
  bool stop_on_non_finite = false;
  double outlier_z = 0;                // standard deviations above the mean; 0: no step is outlying
  std::uint64_t outlier_window = 128;  // steps
  bool listed = false;                 // run.skip_steps names this step
};

/// A step as all ranks together see it.
struct VoteSum {
  bool finite = true;  // no rank said otherwise
  double loss = 0;     // mean over the step's tokens
  double grad_norm = 0;
};

/// `before`: of the applied steps before it; `previous`: why the step before was skipped.
SkipReason why_skipped(const VoteSum& step, const StepStatistics& before, SkipReason previous, const SkipRules& rules);

/// Whether the run ends with a step that was skipped for this reason.
bool ends_run(SkipReason reason, const SkipRules& rules);

/// "non_finite", as in metrics; of no enumerator: "unknown".
const char* name(SkipReason reason);

/// "its gradient norm 31.2 lies 14.1 standard deviations above the mean of the steps before, 1.92"; "" when the step
/// was applied.
std::string describe_skip(const DecisionRecord& record);

}  // namespace ganymede::step_protocol
