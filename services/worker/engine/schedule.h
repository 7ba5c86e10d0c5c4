#pragma once

#include <cstdint>

#include "common/config/config.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/worker_machine.h"

namespace ganymede::worker {

/// Learning rate of a step (1 for the first): linear warm-up over warmup_steps, then constant; or a cosine down to
/// lr · min_lr_ratio at decay_steps (run.steps when 0), and that value from there on; or constant until decay_steps (a
/// tenth of run.steps when 0) before the end of the run, then down to lr · min_lr_ratio at its end, linearly or as
/// 1 − √x (warm-up, stable, decay: Hägele et al., "Scaling Laws and Compute-Optimal Training Beyond Fixed Training
/// Durations", 2024). A run that is made longer leaves its decay, and decays again at the new end.
/// `lr`: optimizer.lr, or what a person has made of it.
double learning_rate(const config::Config& config, double lr, std::uint64_t step);

/// What the configuration, and where the run began, say about any step; nothing of what a setting says.
step_protocol::StepPolicy policy_of(const config::Config& config, const step_protocol::ControlBlock& block,
                                    std::uint64_t optimizer_hash);

/// Completed with what `setting` says about `step`.
step_protocol::StepPolicy following(step_protocol::StepPolicy policy, const step_protocol::Setting& setting,
                                    const config::Config& config, std::uint64_t step);

}  // namespace ganymede::worker
