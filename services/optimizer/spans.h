#pragma once

#include <cstdint>
#include <vector>

#include "common/placement/placement.h"

namespace ganymede::optimizer {

/// Part of a chunk that is updated at once: new values of all its slots stay in the first cache while they are sealed
/// and brought into place.
struct Tile {
  std::uint64_t chunk = 0;  // index in Placement::chunks
  std::int64_t from = 0;    // element of the chunk
  std::int64_t count = 0;   // ≤ placement::tile_elements
};

/// Chunks first … end - 1, which are updated and counted together. Of one bucket; first phases of matrices apart.
struct Span {
  std::uint64_t first = 0, end = 0;
  std::uint64_t tiles = 0;
};

/// How the chunks of a step are grouped into spans, and a span's tiles shared out to strips. A pure function of the
/// placement, so that a successor finds what its predecessor was in. Thread-safe.
class Spans {
 public:
  /// `small`: per bucket, whether its spans have one chunk a strip, because they are passed over a second time.
  Spans(const placement::Placement& placement, const std::vector<bool>& small);

  /// The span that begins with this chunk. Throws Error when none does (damaged memory).
  const Span& at(std::uint64_t chunk) const;

  /// Goes over the tiles of one strip, one after another.
  class Cursor {
   public:
    /// At tile `tile` of the strip; `strip` < Placement::strips.
    Cursor(const placement::Placement& placement, const Span& span, std::uint64_t strip, std::uint64_t tile);
    const Tile& tile() const { return tile_; }
    void next();

   private:
    void cut(std::int64_t from);

    const placement::Placement& placement_;
    Tile tile_;
  };

  /// Tiles of a strip.
  std::uint64_t tiles(const Span& span, std::uint64_t strip) const;

 private:
  const placement::Placement& placement_;
  std::vector<Span> spans_;
};

}  // namespace ganymede::optimizer
