#include "services/worker/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "common/config/step_ranges.h"

namespace ganymede::worker {
namespace {

/// How much of the way down is still to go: 1 at the begin, 0 at the end.
double cosine_share(const config::Config& config, double at) {
  const config::Optimizer& o = config.optimizer;
  auto warmup = static_cast<double>(o.warmup_steps);
  auto end = static_cast<double>(o.decay_steps > 0 ? o.decay_steps : config.run.steps);
  double progress = end > warmup ? std::clamp((at - warmup) / (end - warmup), 0.0, 1.0) : 1.0;
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double wsd_share(const config::Config& config, double at) {
  const config::Optimizer& o = config.optimizer;
  auto end = static_cast<double>(config.run.steps);
  double length = o.decay_steps > 0 ? static_cast<double>(o.decay_steps) : std::max(1.0, std::floor(end / 10));
  double progress = std::clamp((at - (end - length)) / length, 0.0, 1.0);
  return o.decay_shape == config::DecayShape::linear ? 1 - progress : 1 - std::sqrt(progress);
}

}  // namespace

double learning_rate(const config::Config& config, double lr, std::uint64_t step) {
  const config::Optimizer& o = config.optimizer;
  auto at = static_cast<double>(step);
  auto warmup = static_cast<double>(o.warmup_steps);
  if (at < warmup) return lr * at / warmup;
  if (o.schedule == config::Schedule::constant) return lr;
  double share = o.schedule == config::Schedule::wsd ? wsd_share(config, at) : cosine_share(config, at);
  return lr * (o.min_lr_ratio + (1 - o.min_lr_ratio) * share);
}

step_protocol::StepPolicy policy_of(const config::Config& config, const step_protocol::ControlBlock& block,
                                    std::uint64_t optimizer_hash) {
  const config::Optimizer& o = config.optimizer;
  step_protocol::StepPolicy policy;
  policy.stop_after_skips = static_cast<std::uint64_t>(o.stop_after_skips);
  policy.skip.stop_on_non_finite = o.policy == config::SkipPolicy::stop;
  policy.skip.outlier_z = o.policy == config::SkipPolicy::skip_outliers ? o.outlier_z : 0;
  policy.skip.outlier_window = static_cast<std::uint64_t>(o.outlier_window);
  policy.last_step = static_cast<std::uint64_t>(config.run.steps);
  policy.snapshot_every = static_cast<std::uint64_t>(config.checkpoint.every_steps);
  policy.optimizer_hash = optimizer_hash;
  policy.load_step = block.load_step.load(std::memory_order_acquire);
  policy.loaded_statistics = block.loaded_statistics;
  policy.loaded_updates = block.loaded_updates;
  return policy;
}

step_protocol::StepPolicy following(step_protocol::StepPolicy policy, const step_protocol::Setting& setting,
                                    const config::Config& config, std::uint64_t step) {
  policy.change_number = setting.number;
  policy.skip.listed = config::lists_step(config.run.skip_steps, step);
  policy.lr = learning_rate(config, setting.lr, step);
  policy.weight_decay = setting.weight_decay;
  policy.clip_norm = setting.clip_norm;
  policy.groups = {{policy.lr, policy.weight_decay}};
  for (const step_protocol::GroupValues& group : std::span(setting.groups, setting.group_count)) {
    policy.groups.push_back({group.lr < 0 ? policy.lr : learning_rate(config, group.lr, step),
                             group.weight_decay < 0 ? policy.weight_decay : group.weight_decay});
  }
  policy.hyper.assign(setting.hyper, setting.hyper + setting.hyper_count);
  return policy;
}

}  // namespace ganymede::worker
