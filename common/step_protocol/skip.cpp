#include "common/step_protocol/skip.h"

#include <fmt/format.h>

#include <cmath>

#include "common/step_protocol/control_block.h"

namespace ganymede::step_protocol {
namespace {

std::string outlying(const char* figure, double value, const Moments& moments) {
  return fmt::format("its {} {:.4g} lies {:.1f} standard deviations above the mean of the steps before, {:.4g}", figure,
                     value, deviations_above(moments, value), moments.mean);
}

}  // namespace

SkipReason why_skipped(const VoteSum& step, const StepStatistics& before, SkipReason previous, const SkipRules& rules) {
  if (rules.listed) return ends_run(previous, rules) ? SkipReason::stopping : SkipReason::listed;
  if (!step.finite || !std::isfinite(step.loss) || !std::isfinite(step.grad_norm)) return SkipReason::non_finite;
  if (ends_run(previous, rules)) return SkipReason::stopping;
  if (rules.outlier_z == 0 || !has_enough(before, rules.outlier_window)) return SkipReason::none;
  if (deviations_above(before.loss, step.loss) > rules.outlier_z) return SkipReason::loss;
  if (deviations_above(before.grad_norm, step.grad_norm) > rules.outlier_z) return SkipReason::grad_norm;
  return SkipReason::none;
}

bool ends_run(SkipReason reason, const SkipRules& rules) {
  return rules.stop_on_non_finite && (reason == SkipReason::non_finite || reason == SkipReason::stopping);
}

const char* name(SkipReason reason) {
  switch (reason) {
    case SkipReason::none:
      return "none";
    case SkipReason::non_finite:
      return "non_finite";
    case SkipReason::loss:
      return "loss";
    case SkipReason::grad_norm:
      return "grad_norm";
    case SkipReason::stopping:
      return "stopping";
    case SkipReason::listed:
      return "listed";
  }
  return "unknown";
}

std::string describe_skip(const DecisionRecord& record) {
  switch (static_cast<SkipReason>(record.skip_reason)) {
    case SkipReason::none:
      return "";
    case SkipReason::non_finite:
      return "its loss or gradients are not finite";
    case SkipReason::loss:
      return outlying("loss", record.loss_sum / static_cast<double>(record.loss_tokens), record.statistics.loss);
    case SkipReason::grad_norm:
      return outlying("gradient norm", record.grad_norm, record.statistics.grad_norm);
    case SkipReason::stopping:
      return "the run ends because of a step before it, as soon as its last checkpoint can be ordered";
    case SkipReason::listed:
      return "run.skip_steps leaves out what its batch teaches";
  }
  return "for a reason that this program does not know";
}

}  // namespace ganymede::step_protocol
