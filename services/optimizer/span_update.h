#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "common/placement/placement.h"
#include "common/step_protocol/tile_machine.h"
#include "services/optimizer/before_images.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/spans.h"
#include "services/optimizer/team.h"
#include "services/optimizer/tile_update.h"

namespace ganymede::optimizer {

/// What was just carried out on a tile.
struct TileEvent {
  step_protocol::TileActionKind kind{};
  Tile tile;
  std::uint64_t strip = 0;
};

/// Updates the tiles of a span, strip by strip, by the threads of a team (step_protocol/tile_machine.h): they meet at
/// the end of a span alone. Used by one thread.
class SpanUpdate {
 public:
  /// References must outlive it.
  SpanUpdate(const placement::Placement& placement, const CellMemory& memory, TileUpdate& update, BeforeImages& images,
             int threads);

  /// Asked while a snapshot holds an update up; true: it must not go on.
  std::function<bool()> finishing = [] { return false; };
  /// For tests: called after each action on a tile, by the thread that carried it out. What it throws ends `run`.
  std::function<void(const TileEvent&)> observed{};

  const Spans& spans() const { return spans_; }
  /// All tiles of the span that are not done yet, after `update.begin`. `chunks_done` is the cell's word. False when
  /// `finishing` said so: some tiles are not done. Throws Error when the plugin reports that it cannot compute the
  /// update, and when a new value is not finite and the working copy's format cannot carry it.
  bool run(const Span& span, std::uint64_t chunks_done);

 private:
  void run_strip(const Span& span, std::uint64_t strip, std::uint64_t chunks_done);
  bool perform(const TileEvent& event, std::uint64_t done, ChunkCall& call, std::uint64_t& protected_chunk);
  bool protect(std::uint64_t chunk);
  void publish_span_blocks(const Span& span);

  const placement::Placement& placement_;
  const CellMemory& memory_;
  TileUpdate& update_;
  BeforeImages& images_;
  Spans spans_;
  std::mutex protecting_;             // images_
  std::atomic<bool> stopped_{false};  // of a run: threads end with the action that they are in
  std::mutex failing_;
  std::exception_ptr failure_;
  Team team_;  // last: its threads use what is above
};

}  // namespace ganymede::optimizer
