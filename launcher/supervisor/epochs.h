#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/config/config.h"
#include "common/service/run_directory.h"

namespace ganymede::launcher {

/// The state epochs of a job, in job.json and config.<epoch>.toml of the current folder: the optimizer in force, and
/// the one that a swap leads to. An epoch is listed before anything of it is made, and until nothing of it is left; its
/// number is never used again in the job. Not thread-safe.
class Epochs {
 public:
  /// `config`: of the first one in job.json. Both are copied.
  Epochs(const config::Config& config, const service::Job& job);

  /// Of one that is or was in the list in the life of this object. Throws Error.
  const config::Config& config_of(std::uint64_t epoch);
  /// The same; nullptr where it would throw.
  const config::Config* find_config(std::uint64_t epoch);
  service::JobEpoch of(std::uint64_t epoch) const { return job_.epoch(epoch); }
  /// In force since the last `settle`.
  std::uint64_t first() const { return job_.first_epoch().number; }
  /// The one that a swap under way leads to, or led to: 0 when there is none.
  std::uint64_t next() const { return job_.epochs.size() > 1 ? job_.epochs.back().number : 0; }

  /// Lists a new one and returns its number. `configuration` is the effective one. Throws Error when a file cannot be
  /// written.
  std::uint64_t add(const std::string& configuration, const std::vector<service::JobPlugin>& plugins);
  /// The same of one whose number another node has given.
  void add(std::uint64_t number, const std::string& configuration, const std::vector<service::JobPlugin>& plugins);
  /// Takes it from the list, and removes its file and the copies of its plugins that no listed epoch has.
  void drop(std::uint64_t epoch);
  /// Removes those copies alone: of a swap that was not begun.
  void forget(const std::vector<service::JobPlugin>& plugins) const;
  /// It is the only one from now on.
  void settle(std::uint64_t epoch);

  /// Removes what the job before this one has left.
  static void clear();

 private:
  service::Job job_;
  std::map<std::uint64_t, config::Config> configs_;
};

}  // namespace ganymede::launcher
