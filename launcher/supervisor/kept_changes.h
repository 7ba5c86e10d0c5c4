#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/config/config.h"

namespace ganymede::launcher {

/// What a person has changed while the run ran, in the run directory: a run that is started again with the same recipe
/// keeps it.
struct KeptChanges {
  std::uint64_t job = 0, number = 0;    // the newest change, and in which job
  std::map<std::string, double> given;  // by key, what recipe and settings said when it was changed
  std::map<std::string, double> now;    // the same keys
  std::uint64_t epoch = 0;              // that is in force in the job; `given` and `now` are about its optimizer
  std::string optimizer = {};           // of that epoch, if the run was swapped to it
  /// What recipe and settings said in [optimizer], as TOML by key, when the run got another one; none: it did not.
  std::map<std::string, std::string> recipe = {};
  std::set<std::string> said = {};  // keys of these that the command line had set then
};

constexpr const char* changes_file = "changes.json";

/// Empty when there is no file. Throws Error when it cannot be read.
KeptChanges read_changes();
/// A write leaves the old or the new content. Throws Error.
void write_changes(const KeptChanges& changes);

/// The optimizer of another state epoch is in force, that of this name. `said`: keys that the command line has set.
void note_swap(KeptChanges& changes, std::uint64_t epoch, const std::string& optimizer, const config::Config& recipe,
               const std::set<std::string>& said = {});
/// A change has given `key` another value; until the run began it had `before`.
void note_change(KeptChanges& changes, const std::string& key, double before, const std::set<std::string>& said = {});

/// "optimizer.lr 0.003 → 0.002, …", of the keys whose value is another one than the recipe's; "": none.
std::string describe(const KeptChanges& changes);

/// Puts the kept values into the configuration of a new start, and returns a line about them, or "". A key for which
/// recipe and settings say something else than when it was changed, or which the command line sets (`said`) and did not
/// set then, goes by them, and is not kept any more: the same command keeps it.
std::string keep_changes(KeptChanges& changes, config::Config& config, const std::set<std::string>& said = {});

/// The same of a swap, before it: a new start has the optimizer of `checkpoint`, the configuration of the newest one
/// (nullptr: there is none), but for keys that go by recipe and settings as above. Where the optimizer's name does, all
/// of them do, and nothing is kept. A swap that the checkpoint is
/// older than is said to be lost, and what was changed after it is not kept. Throws Error as config::load.
std::string keep_swap(KeptChanges& changes, const config::Config* checkpoint, config::Config& config,
                      const std::set<std::string>& said = {});

}  // namespace ganymede::launcher
