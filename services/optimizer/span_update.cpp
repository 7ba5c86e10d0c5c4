#include "services/optimizer/span_update.h"

#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/step_protocol/snapshot_machine.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {

namespace sp = step_protocol;
using sp::TileActionKind;

namespace {

std::vector<bool> buckets_by_blocks(const placement::Placement& placement, const CellMemory& memory) {
  std::vector<bool> found;
  for (std::size_t i = 0; i < placement.buckets.size(); i++) found.push_back(by_blocks(memory, static_cast<int>(i)));
  return found;
}

}  // namespace

SpanUpdate::SpanUpdate(const placement::Placement& placement, const CellMemory& memory, TileUpdate& update,
                       BeforeImages& images, int threads)
    : placement_(placement),
      memory_(memory),
      update_(update),
      images_(images),
      spans_(placement, buckets_by_blocks(placement, memory)),
      team_(threads, placement.strips) {}

bool SpanUpdate::run(const Span& span, std::uint64_t chunks_done) {
  stopped_ = false;
  team_.run([&](int strip) {
    try {
      run_strip(span, static_cast<std::uint64_t>(strip), chunks_done);
    } catch (...) {
      std::lock_guard lock(failing_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
    }
  });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (stopped_) return false;
  publish_span_blocks(span);
  return true;
}

void SpanUpdate::run_strip(const Span& span, std::uint64_t strip, std::uint64_t chunks_done) {
  std::uint64_t tiles = spans_.tiles(span, strip);
  if (tiles == 0) return;
  sp::StripWords& words = memory_.strips[strip];
  auto next = [&](sp::TileStage stage) {
    sp::StripState state{words.done.load(std::memory_order_acquire), words.seal.load(std::memory_order_acquire)};
    return sp::next_tile_action(stage, state, chunks_done, tiles);
  };
  sp::TileStage stage = sp::TileStage::fresh;
  sp::TileAction action = next(stage);
  Spans::Cursor cursor(placement_, span, strip, action.tile);
  ChunkCall call;
  std::uint64_t protected_chunk = span.end;  // none
  while (action.kind != TileActionKind::finished && !stopped_.load(std::memory_order_relaxed)) {
    TileEvent event{action.kind, cursor.tile(), strip};
    if (!perform(event, sp::tiles_word(chunks_done, action.tile), call, protected_chunk)) break;
    if (observed) observed(event);
    if (event.kind == TileActionKind::count) cursor.next();
    stage = sp::after(stage, event.kind);
    action = next(stage);
  }
  finish_publishing();
}

/// `done`: the strip's word of the tiles before this one; `protected_chunk`: the newest that may be overwritten. False
/// when the run has to stop before the action.
bool SpanUpdate::perform(const TileEvent& event, std::uint64_t done, ChunkCall& call, std::uint64_t& protected_chunk) {
  sp::StripWords& words = memory_.strips[event.strip];
  float* redo = &memory_.redo[event.strip * (1 + memory_.state.size()) * placement::tile_elements];
  switch (event.kind) {
    case TileActionKind::finished:
      return true;
    case TileActionKind::clear_seal:
      words.seal.store(0, std::memory_order_release);
      return true;
    case TileActionKind::compute:
      update_.enter(call, event.tile, redo);
      if (int code = call.changes ? update_.compute(call, event.tile, redo) : 0; code != 0)
        update_.fail_of_plugin(event.tile, code);
      return true;
    case TileActionKind::store_seal:
      words.seal.store(done + 1, std::memory_order_release);
      return true;
    case TileActionKind::copy:
      update_.enter(call, event.tile, redo);
      if (!call.changes) return true;
      if (event.tile.chunk != protected_chunk && !protect(event.tile.chunk)) return false;
      protected_chunk = event.tile.chunk;
      update_.copy(call, event.tile, redo);
      return true;
    case TileActionKind::count:
      words.done.store(done + 1, std::memory_order_release);
      return true;
  }
  impossible(__FILE__, __LINE__, "unknown action of a tile");
}

/// Before a strip overwrites what it has of a chunk; strips may share one. False when the service is finishing.
bool SpanUpdate::protect(std::uint64_t chunk) {
  if (update_.scope() == Scope::state) return true;  // which is in no snapshot
  // The server that runs this arms snapshots, between steps: none is armed while a span is updated.
  if (!sp::is_armed(memory_.control->snapshot.load(std::memory_order_acquire))) return true;
  std::lock_guard lock(protecting_);
  if (stopped_) return false;
  bool go_on = images_.protect(static_cast<std::int64_t>(chunk), finishing);
  if (!go_on) stopped_ = true;
  return go_on;
}

/// When all of the span is in the master: a block may begin in another strip's tile. Once more after a kill that comes
/// before the span is counted.
void SpanUpdate::publish_span_blocks(const Span& span) {
  int bucket = placement_.chunks[span.first].bucket;
  if (!by_blocks(memory_, bucket)) return;
  std::vector<wire::NonFinite> found(span.end - span.first);
  team_.run([&](int piece) {
    for (auto i = static_cast<std::size_t>(piece); i < found.size(); i += static_cast<std::size_t>(team_.pieces())) {
      const placement::Chunk& chunk = placement_.chunks[span.first + i];
      if (update_.publishes(chunk))
        found[i] = publish_blocks(memory_, placement_, bucket, chunk.shard_offset, chunk.count);
    }
  });
  for (const wire::NonFinite& one : found) refuse_non_finite(placement_, one, update_.step());
}

}  // namespace ganymede::optimizer
