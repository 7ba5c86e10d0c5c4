#include "services/worker/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

double learning_rate(const config::Config& config, std::uint64_t step) {
  const config::Optimizer& o = config.optimizer;
  auto at = static_cast<double>(step);
  auto warmup = static_cast<double>(o.warmup_steps);
  if (at < warmup) return o.lr * at / warmup;
  if (o.schedule == config::Schedule::constant) return o.lr;
  double share = o.schedule == config::Schedule::wsd ? wsd_share(config, at) : cosine_share(config, at);
  return o.lr * (o.min_lr_ratio + (1 - o.min_lr_ratio) * share);
}

step_protocol::StepPolicy policy_of(const config::Config& config, std::uint64_t step, std::uint64_t load_step,
                                    std::uint64_t optimizer_hash) {
  const config::Optimizer& o = config.optimizer;
  step_protocol::StepPolicy policy;
  policy.lr = learning_rate(config, step);
  policy.weight_decay = o.weight_decay;
  policy.clip_norm = o.clip_norm;
  policy.hyper = config::hyper_values(o);
  policy.stop_after_skips = static_cast<std::uint64_t>(o.stop_after_skips);
  policy.last_step = static_cast<std::uint64_t>(config.run.steps);
  policy.snapshot_every = static_cast<std::uint64_t>(config.checkpoint.every_steps);
  policy.optimizer_hash = optimizer_hash;
  policy.load_step = load_step;
  return policy;
}

}  // namespace ganymede::worker
