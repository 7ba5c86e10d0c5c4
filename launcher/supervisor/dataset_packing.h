#pragma once

#include <string>

#include "common/config/config.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// Packs data.sources into data.path when there is nothing yet, with `ganymede-data pack`, whose progress a person
/// sees. The configuration is read from config.toml in the current folder. Throws Error when the dataset is missing and
/// cannot be made.
void pack_if_missing(const config::Config& config, const std::string& programs, Signals& signals, Terminal& terminal);

/// Identity of the content of the dataset at data.path, as `ganymede-data inspect` finds it. Throws Error when it is
/// damaged.
std::string dataset_hash(const config::Config& config, const std::string& programs, Signals& signals);

}  // namespace ganymede::launcher
