#include "services/worker/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ganymede::worker {

double learning_rate(const config::Config& config, std::uint64_t step) {
  const config::Optimizer& o = config.optimizer;
  auto at = static_cast<double>(step);
  auto warmup = static_cast<double>(o.warmup_steps);
  if (at < warmup) return o.lr * at / warmup;
  if (o.schedule == config::Schedule::constant) return o.lr;
  auto end = static_cast<double>(o.decay_steps > 0 ? o.decay_steps : config.run.steps);
  double progress = end > warmup ? std::clamp((at - warmup) / (end - warmup), 0.0, 1.0) : 1.0;
  double share = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return o.lr * (o.min_lr_ratio + (1 - o.min_lr_ratio) * share);
}

step_protocol::StepPolicy policy_of(const config::Config& config, std::uint64_t step, std::uint64_t load_step,
                                    std::uint64_t optimizer_hash) {
  const config::Optimizer& o = config.optimizer;
  step_protocol::StepPolicy policy;
  policy.lr = learning_rate(config, step);
  policy.beta1 = o.beta1;
  policy.beta2 = o.beta2;
  policy.eps = o.eps;
  policy.weight_decay = o.weight_decay;
  policy.clip_norm = o.clip_norm;
  policy.last_step = static_cast<std::uint64_t>(config.run.steps);
  policy.snapshot_every = static_cast<std::uint64_t>(config.checkpoint.every_steps);
  policy.optimizer_hash = optimizer_hash;
  policy.load_step = load_step;
  return policy;
}

}  // namespace ganymede::worker
