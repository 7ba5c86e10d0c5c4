#pragma once

#include <cstdint>
#include <string>

#include "common/config/config.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/host_budget.h"
#include "launcher/supervisor/node_begin.h"
#include "launcher/supervisor/options.h"
#include "launcher/supervisor/segment_memory.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// A run directory that is ready for its services: config.toml and job.json are written, the dataset and the plugin
/// are there.
struct ReadyRun {
  config::Config config;
  service::Job job;
  HostBudget budget;
  std::uint64_t load_step = 0;  // of the checkpoint to go on from; 0: a fresh start
  bool done() const { return load_step >= static_cast<std::uint64_t>(config.run.steps); }
};

struct Launching;

/// Makes the current folder ready: loads and checks the recipe, finds the checkpoint to go on from, packs the dataset
/// on first use, prepares the optimizer plugin, shows model and memory, refuses what does not fit. A run that has its
/// steps is left as it is. Throws Error; then config.toml is as before.
ReadyRun begin_run(Launching& launching);

/// The same on a node other than 0, which takes over what the coordinator has decided. Throws Error.
ReadyRun begin_on_node(Launching& launching, const Welcome& welcome);

/// What a launcher before this one, whose segments still live, has made ready; with the nodes that take part. Throws
/// Error.
ReadyRun resume_run(Launching& launching);

/// Shows how far the placing of segments is, and ends it like `stop_if_signalled`. Both must outlive it.
PlacingProgress placing_shown(Signals& signals, Terminal& terminal);

}  // namespace ganymede::launcher
