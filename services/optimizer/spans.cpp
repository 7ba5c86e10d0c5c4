#include "services/optimizer/spans.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::optimizer {
namespace {

constexpr std::uint64_t most_chunks_of_a_strip = 16;  // some 0.2 ms: threads meet rarely beside it

std::uint64_t tiles_of(const placement::Chunk& chunk) {
  if (chunk.parameter < 0) return 0;  // a gap
  return static_cast<std::uint64_t>((chunk.count + placement::tile_elements - 1) / placement::tile_elements);
}

/// The first of the span's tiles that is one of the strip.
std::uint64_t first_tile(const placement::Placement& placement, const Span& span, std::uint64_t strip) {
  return span.tiles * strip / static_cast<std::uint64_t>(placement.strips);
}

}  // namespace

Spans::Spans(const placement::Placement& placement, const std::vector<bool>& small) : placement_(placement) {
  const std::vector<placement::Chunk>& chunks = placement.chunks;
  auto strips = static_cast<std::uint64_t>(placement.strips);
  for (std::uint64_t first = 0; first < chunks.size(); first = spans_.back().end) {
    const placement::Chunk& one = chunks[first];
    std::uint64_t most = strips * (small[static_cast<std::size_t>(one.bucket)] ? 1 : most_chunks_of_a_strip);
    Span span{first, first, 0};
    auto alike = [&](const placement::Chunk& chunk) {
      bool phase = (chunk.phase == placement::Phase::state) == (one.phase == placement::Phase::state);
      return chunk.bucket == one.bucket && phase;
    };
    for (; span.end < chunks.size() && span.end - first < most && alike(chunks[span.end]); span.end++) {
      span.tiles += tiles_of(chunks[span.end]);
    }
    spans_.push_back(span);
  }
}

const Span& Spans::at(std::uint64_t chunk) const {
  auto span = std::lower_bound(spans_.begin(), spans_.end(), chunk,
                               [](const Span& one, std::uint64_t first) { return one.first < first; });
  if (span == spans_.end() || span->first != chunk) {
    fail("{} chunks of a step are counted, between two that are counted together; start again from the last checkpoint",
         chunk);
  }
  return *span;
}

std::uint64_t Spans::tiles(const Span& span, std::uint64_t strip) const {
  return first_tile(placement_, span, strip + 1) - first_tile(placement_, span, strip);
}

Spans::Cursor::Cursor(const placement::Placement& placement, const Span& span, std::uint64_t strip, std::uint64_t tile)
    : placement_(placement), tile_{span.first, 0, 0} {
  std::uint64_t before = first_tile(placement, span, strip) + tile;
  while (tile_.chunk < span.end && before >= tiles_of(placement.chunks[tile_.chunk])) {
    before -= tiles_of(placement.chunks[tile_.chunk++]);
  }
  if (tile_.chunk < span.end) cut(static_cast<std::int64_t>(before) * placement::tile_elements);
}

void Spans::Cursor::next() {
  const std::vector<placement::Chunk>& chunks = placement_.chunks;
  std::int64_t from = tile_.from + tile_.count;
  while (tile_.chunk < chunks.size() && (chunks[tile_.chunk].parameter < 0 || from >= chunks[tile_.chunk].count)) {
    tile_.chunk++;
    from = 0;
  }
  if (tile_.chunk < chunks.size()) cut(from);
}

void Spans::Cursor::cut(std::int64_t from) {
  tile_.from = from;
  tile_.count = std::min(placement::tile_elements, placement_.chunks[tile_.chunk].count - from);
}

}  // namespace ganymede::optimizer
