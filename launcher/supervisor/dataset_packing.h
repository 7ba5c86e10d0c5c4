#pragma once

#include <cstdint>
#include <string>

#include "common/config/config.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// Throws Error(usage) when the dataset at data.path is not there and no data.sources are named to pack it from.
void require_dataset_or_sources(const config::Config& config);

/// Packs data.sources into data.path when there is nothing yet, with `ganymede-data pack`, whose progress a person
/// sees. The configuration is read from config.toml in the current folder. Throws Error when the dataset is missing and
/// cannot be made.
void pack_if_missing(const config::Config& config, const std::string& programs, Signals& signals, Terminal& terminal);

struct DatasetFacts {
  std::string hash;  // identity of its content
  std::uint64_t validation_rows = 0;
};

/// Of the dataset at data.path, as `ganymede-data inspect` finds them. Throws Error when it is damaged.
DatasetFacts dataset_facts(const config::Config& config, const std::string& programs, Signals& signals);

/// Validation takes no more rows than a dataset holds out: `validation.rows` becomes their number where it is larger,
/// so that no rank computes padding in the place of what is missing. Returns what there is to say about it; empty:
/// nothing. Throws Error(usage) for a run that wants validation without any.
std::string limit_validation(config::Config& config, std::uint64_t held_out);

}  // namespace ganymede::launcher
