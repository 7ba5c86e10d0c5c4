#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/coordinator/next_world.h"
#include "launcher/supervisor/options.h"
#include "launcher/supervisor/restart_policy.h"

namespace ganymede::launcher {

/// Whether and how the world of a run forms again from its last checkpoint: without nodes that are lost, or with all,
/// whose states do not belong together (protocol rule 8). Lives as long as the launcher of node 0. Not thread-safe.
class Reforming {
 public:
  /// `options` must outlive it.
  explicit Reforming(const Options& options) : options_(options) {}

  /// The world after `now` without the nodes `lost`, with what it needs of `spares`. Nothing when elastic.* or the
  /// nodes that remain do not allow one; `lost` empty: always `now`. Throws Error when the recipe cannot be read.
  std::optional<coordinator::NextWorld> next(const coordinator::NextWorld& now, const std::vector<int>& lost,
                                             const std::vector<int>& spares) const;
  /// The world that a person wishes for. Throws Error(usage) for one that cannot be.
  coordinator::NextWorld wished(const coordinator::NextWorld& now, const coordinator::WorldWish& wish,
                                const std::vector<int>& spares) const;
  /// From now on `leave` leads to what is wished for, and the seats of nodes that are left are not taken in again.
  void wish(coordinator::WorldWish wish, const std::map<int, std::uint64_t>& seats);
  /// The world that is left for: as wished, where that can be without the nodes `lost` as well, else as `next`. A wish
  /// is for one world.
  std::optional<coordinator::NextWorld> leave(const coordinator::NextWorld& now, const std::vector<int>& lost,
                                              const std::vector<int>& spares);
  /// By node: a keeper's life that a person wants to be left.
  const std::map<int, std::uint64_t>& left_out() const { return left_out_; }

  /// Why `next` finds nothing, and the way out, in a sentence.
  std::string why_not(const coordinator::NextWorld& now, const std::vector<int>& lost) const;

  /// The world is about to form again. False when it has done so too often: launch.restart_budget times within
  /// launch.restart_window_seconds.
  bool allowed(double now);

 private:
  config::Config load(const config::Parallel& parallel) const;

  const Options& options_;
  std::optional<RestartPolicy> policy_;
  std::optional<coordinator::WorldWish> wish_;
  std::map<int, std::uint64_t> left_out_;
};

/// "with 2 ranks on nodes 0 and 2".
std::string describe(const coordinator::NextWorld& world);

}  // namespace ganymede::launcher
