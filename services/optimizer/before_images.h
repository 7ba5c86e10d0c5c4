#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"

namespace ganymede::optimizer {

/// The writer's half of a snapshot (rules 18 to 20): before a chunk that the reader has not read is overwritten, its
/// values go to the side buffer. A slot is free again once the reader has marked the chunk it holds. What is in use is
/// read from the segment, so a successor goes on where its predecessor died. Used by one thread.
class BeforeImages {
 public:
  /// `waits` is called when a wait for the reader begins.
  BeforeImages(const placement::Placement& placement, const CellMemory& memory, double wait_seconds,
               std::function<void()> waits);

  /// Call before each overwrite of a chunk. Waits while the side buffer is full; when that has taken `wait_seconds` in
  /// one bucket it cancels the snapshot: the gathers of all ranks wait for that bucket, and give up after a time. False
  /// when `finishing()` said so during the wait: the chunk must not be overwritten.
  bool protect(std::int64_t chunk, const std::function<bool()>& finishing);

  /// Logs how long the update of `step` waited for the reader, if it did, and starts to count again.
  void report(std::uint64_t step);

 private:
  void follow(std::uint64_t step);
  bool save(std::uint64_t step, std::int64_t chunk);
  void cancel(std::uint64_t word) const;

  const placement::Placement& placement_;
  const CellMemory& memory_;
  double wait_seconds_;
  std::function<void()> waits_;
  std::uint64_t step_ = 0;            // of the snapshot that `held_` describes; 0: none
  std::vector<std::int64_t> held_;    // per slot: the chunk whose image it holds, or -1
  double waited_seconds_ = 0;         // in this update
  int bucket_ = -1;                   // of the chunk before; -1: none
  double bucket_waited_seconds_ = 0;  // in this bucket
  std::size_t next_ = 0;              // slot to look at first
};

}  // namespace ganymede::optimizer
