#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

namespace ganymede::coordinator {

/// Decides when the world gets a new generation. Not thread-safe.
class Membership {
 public:
  /// `highest_seen`: the highest generation that was ever announced in this job (0: none).
  Membership(int world, std::uint64_t highest_seen) : world_(world), generation_(highest_seen) {}

  /// A generation that another node was told by a coordinator before this one (protocol rule 11). Before `begin`.
  void seen(std::uint64_t generation) { generation_ = std::max(generation_, generation); }

  /// A worker is there.
  void worker_registered(int rank) { present_.insert(rank); }

  /// Every state is loaded: returns the first generation of this launcher, once, as soon as the world is complete.
  std::optional<std::uint64_t> begin();

  /// A worker ended before its work was done. Returns the new generation that its replacement will join; nothing
  /// before the first one began.
  std::optional<std::uint64_t> worker_died(int rank);

  /// The current generation is of no use although every process lives (its ranks do not find one another, or lost
  /// their connections), when `decided` is the newest step. Returns the next one; nothing when `most_failures`
  /// generations in a row have ended so without a step between them. Those that `counts` is false for are excused.
  std::optional<std::uint64_t> failed(std::uint64_t decided, bool counts = true);
  static constexpr int most_failures = 3;
  /// Whether this launcher has announced `generation` and none after it.
  bool is_current(std::uint64_t generation) const { return begun_ && generation == generation_; }

  /// The generation announced last; before the first one of this launcher, that of its predecessor.
  std::uint64_t generation() const { return generation_; }
  /// In which the ranks meet next, or have met: as `generation`, but for a launcher that has announced none.
  std::uint64_t next_formed() const { return begun_ ? generation_ : generation_ + 1; }
  bool complete() const { return static_cast<int>(present_.size()) == world_; }

 private:
  int world_;
  std::uint64_t generation_;
  bool begun_ = false;  // this launcher has announced one
  int failures_ = 0;    // in a row
  std::uint64_t decided_at_failure_ = 0;
  std::set<int> present_;
};

}  // namespace ganymede::coordinator
