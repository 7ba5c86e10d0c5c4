#pragma once

#include <cstdint>
#include <string>

#include "common/config/config.h"
#include "common/service/run_directory.h"

/// Going back in a run, behind a loss spike say: `ganymede train --from STEP` goes on from an earlier checkpoint of the
/// run. What is newer is set aside, never lost.
namespace ganymede::launcher {

/// The step that --from names of the run in the current folder; 0: none, or a launcher before this one (of the same
/// keeper) has gone back already.
std::uint64_t step_to_go_back_to(const std::string& from);

/// Of the run's own manifests those up to `step`. Throws Error(usage) when there is no intact one of it, which names
/// those that there are.
service::Manifests up_to(service::Manifests own, std::uint64_t step, const std::string& run);

/// Throws Error(usage) when the run would have nothing to do behind `step`.
void check_steps_behind(std::uint64_t step, const config::Config& config);

/// Copies the run's checkpoints and metrics to checkpoint/abandoned.N (files that never change are linked, so it takes
/// no room while they are in use in both), then takes the manifests of later steps than `step` out of the run, newest
/// first. `own`: all of the run. Returns a line that says where what is newer is; empty, and nothing is copied, when
/// nothing is. A kill leaves the run as it was, or without its newest checkpoints, which are in the copy; done again,
/// it goes on. Throws Error.
std::string set_newer_aside(const service::Manifests& own, std::uint64_t step, const std::string& run);

}  // namespace ganymede::launcher
