#pragma once

#include <cstdint>
#include <string>

#include "common/config/config.h"
#include "common/metrics/record.h"
#include "common/step_protocol/control_block.h"
#include "common/step_protocol/skip.h"
#include "launcher/supervisor/terminal.h"

/// Steps that were not applied: said, counted, and told at the end of a run that ended because of them.
namespace ganymede::launcher {

/// Of all launches of a run.
struct SkipCounts {
  std::uint64_t steps = 0;                                // all
  std::uint64_t non_finite = 0, loss = 0, grad_norm = 0;  // by reason
  std::uint64_t listed = 0;                               // in run.skip_steps
};

/// Not thread-safe.
class Skips {
 public:
  /// The terminal outlives it.
  explicit Skips(Terminal& terminal) : terminal_(terminal) {}

  /// `before`: of the launches before this one.
  void go_on_from(const SkipCounts& before) { counts_ = before; }

  /// Of every step, in their order. Says one that was skipped, but of several in a row that are not finite, or in
  /// run.skip_steps, the first alone. `text`: as step_protocol::describe_skip.
  void take(std::uint64_t step, step_protocol::SkipReason reason, const std::string& text);

  /// "skipped_steps" and the counts by reason.
  void write_counts(metrics::Record& record) const;
  /// "skipped", "skip_reason" where it was, and the counts.
  void write(metrics::Record& record) const;

 private:
  Terminal& terminal_;
  SkipCounts counts_;
  step_protocol::SkipReason last_ = step_protocol::SkipReason::none;
};

/// The sentences that a run ends with because the step of its last record was skipped: by optimizer.policy = "stop", or
/// as one of too many in a row. `done`: the run has all its steps; then losses that are not finite are too many from
/// the second on. Empty: that is not why it ended.
std::string ended_by_skips(const config::Optimizer& optimizer, const step_protocol::DecisionRecord& last,
                           bool done = false);

}  // namespace ganymede::launcher
