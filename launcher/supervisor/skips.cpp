#include "launcher/supervisor/skips.h"

#include <fmt/format.h>

#include "common/base/log.h"

namespace ganymede::launcher {

using step_protocol::SkipReason;

void Skips::take(std::uint64_t step, SkipReason reason, const std::string& text) {
  bool in_rows = reason == SkipReason::non_finite || reason == SkipReason::listed;
  bool said = reason == SkipReason::none || (in_rows && last_ == reason);
  last_ = reason;
  if (reason != SkipReason::none) ++counts_.steps;
  if (reason == SkipReason::non_finite) ++counts_.non_finite;
  if (reason == SkipReason::loss) ++counts_.loss;
  if (reason == SkipReason::grad_norm) ++counts_.grad_norm;
  if (reason == SkipReason::listed) ++counts_.listed;
  if (!said) terminal_.line(fmt::format("step {} is skipped: {}; the parameters stay as they were", step, text));
}

void Skips::write_counts(metrics::Record& record) const {
  record.set("skipped_steps", counts_.steps)
      .set("skipped_non_finite", counts_.non_finite)
      .set("skipped_loss", counts_.loss)
      .set("skipped_grad_norm", counts_.grad_norm)
      .set("skipped_listed", counts_.listed);
}

void Skips::write(metrics::Record& record) const {
  record.set("skipped", last_ != SkipReason::none);
  if (last_ != SkipReason::none) record.set("skip_reason", step_protocol::name(last_));
  write_counts(record);
}

namespace {

/// The way out of steps that are too large.
const char* smaller_steps(const config::Optimizer& optimizer) {
  return optimizer.clip_norm > 0 ? "Lower optimizer.lr or optimizer.clip_norm"
                                 : "Lower optimizer.lr or set optimizer.clip_norm (it is 0: off)";
}

}  // namespace

std::string ended_by_skips(const config::Optimizer& optimizer, const step_protocol::DecisionRecord& last, bool done) {
  step_protocol::SkipRules rules{.stop_on_non_finite = optimizer.policy == config::SkipPolicy::stop};
  auto reason = static_cast<SkipReason>(last.skip_reason);
  std::uint64_t good = last.step - last.skipped_in_row;
  if (step_protocol::ends_run(reason, rules))
    return fmt::format(
        "The loss or gradients of step {} were not finite, and optimizer.policy = \"stop\" ends the run there; nothing "
        "has changed since step {}. {}, or begin from a checkpoint before it (--from); the same command goes on with "
        "step {}.",
        good + 1, good, smaller_steps(optimizer), last.step + 1);
  auto limit = static_cast<std::uint64_t>(optimizer.stop_after_skips);
  // A run that ends in nothing but losses that are not finite is no success, however short it was.
  bool ruined = done && reason == SkipReason::non_finite && last.skipped_in_row > 1;
  if (limit == 0 || (last.skipped_in_row < limit && !ruined)) return "";
  std::string text = fmt::format(
      "The last {} steps, up to {}, were skipped, that one because {}; nothing has changed since step {}. {}, or "
      "begin from a checkpoint before it (--from); ",
      last.skipped_in_row, last.step, step_protocol::describe_skip(last), good, smaller_steps(optimizer));
  if (reason != SkipReason::non_finite)
    text += "where such steps are right, raise optimizer.outlier_z or set optimizer.policy=skip; ";
  return text + "optimizer.stop_after_skips says after how many a run ends.";
}

}  // namespace ganymede::launcher
