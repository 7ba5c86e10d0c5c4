#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/config/config.h"

namespace ganymede::launcher {

/// What a person has changed while the run ran, in the run directory: a run that is started again with the same recipe
/// keeps it.
struct KeptChanges {
  std::uint64_t job = 0, number = 0;    // the newest change, and in which job
  std::map<std::string, double> given;  // by key, what recipe and settings said when it was changed
  std::map<std::string, double> now;    // the same keys
};

constexpr const char* changes_file = "changes.json";

/// Empty when there is no file. Throws Error when it cannot be read.
KeptChanges read_changes();
/// A write leaves the old or the new content. Throws Error.
void write_changes(const KeptChanges& changes);

/// "optimizer.lr 0.003 → 0.002, …", of the keys whose value is another one than the recipe's; "": none.
std::string describe(const KeptChanges& changes);

/// Puts the kept values into the configuration of a new start, and returns a line about them, or "". A key for which
/// recipe and settings say something else than when it was changed goes by them, and is not kept any more.
std::string keep_changes(KeptChanges& changes, config::Config& config);

}  // namespace ganymede::launcher
