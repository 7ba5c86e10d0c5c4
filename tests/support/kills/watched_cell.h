#pragma once

#include <cstdint>
#include <string>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/service/service.h"
#include "common/shm/segment.h"

namespace ganymede::test {

/// The shared words of one cell of a real run, seen from outside: what its services do at this moment. The segments
/// outlive services and launcher; a run that goes back to a checkpoint has others.
class WatchedCell {
 public:
  /// Waits until the cell `rank` of the run in `run` has its segments. Throws Error.
  WatchedCell(const std::string& run, int rank);

  const config::Config& config() const { return config_; }
  const placement::Placement& placement() const { return placement_; }
  int rank() const { return placement_.rank; }

  /// The newest that the launcher has announced here.
  std::uint64_t generation() const { return control_.block->generation.load(); }
  std::uint64_t load_step() const { return control_.block->load_step.load(); }
  std::uint64_t decided_step() const { return control_.block->decided_step.load(); }
  std::uint64_t committed_step() const { return chunks_done() / placement_.chunks.size(); }
  /// What a service says that it does.
  std::uint64_t operation(service::Kind kind) const { return words(kind).operation.load(); }
  std::uint64_t bucket(service::Kind kind) const { return words(kind).bucket.load(); }
  /// Whether the worker has joined a generation in which the ranks have not met yet.
  bool meets() const;
  /// The chunk that the optimizer server updates now; nullptr: it has no decided step to apply.
  const placement::Chunk* updated_chunk() const;
  /// Whether a snapshot is taken, and the share of its chunks that is read.
  bool snapshot_armed() const;
  double snapshot_read() const;

 private:
  const step_protocol::ServiceWords& words(service::Kind kind) const {
    return control_.services[static_cast<std::size_t>(kind)];
  }
  std::uint64_t chunks_done() const { return state_.words->chunks_done.load(); }

  config::Config config_;
  placement::Placement placement_;
  shm::Segment control_segment_, state_segment_, side_segment_;
  service::Control control_;
  service::EpochControl state_;
  std::span<step_protocol::Word> read_marks_;
};

}  // namespace ganymede::test
