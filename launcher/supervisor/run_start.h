#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/config/config.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/options.h"
#include "launcher/supervisor/terminal.h"

/// From which checkpoint a run begins, and whether what it begins with belongs to it.
namespace ganymede::launcher {

/// The checkpoint to begin with: this run's newest, else the one that --from names, else none.
struct Start {
  std::string folder;                         // of another run, absolute; empty: this run's own
  std::optional<service::Manifest> manifest;  // none: a fresh start
  std::uint64_t step() const { return manifest ? manifest->step : 0; }
};

/// `from`: as service::read_checkpoint_name. Shows a line for each newer one that is damaged. Never a fresh start where
/// all of this run's are damaged: it would overwrite them. Throws Error.
Start find_start(const service::Manifests& own, const std::string& from, Terminal& terminal);

/// The configuration of what this run directory has: that of its newest checkpoint, else of config.toml; nothing when
/// the run is new. `run`: as a person calls it. Throws Error.
std::optional<config::Config> configuration_before(const service::Manifests& own, const std::string& run);

/// Throws Error(usage) when the run would begin with a checkpoint of another optimizer or model, or one that is beyond
/// run.steps (for --from: that has all of them). `recipe_steps`: those of the recipe itself, which are proposed then.
void check_start(const Start& start, const config::Config& config, const std::string& run, std::uint64_t recipe_steps);

/// `dataset`: hash of its content. A run goes on with the one that it began with: throws Error(usage) otherwise. A new
/// one that starts from another run's checkpoint may have its own, which a line says.
void check_dataset(const Start& start, const config::Config& config, const std::string& dataset, const std::string& run,
                   Terminal& terminal);

}  // namespace ganymede::launcher
