#include "services/optimizer/spans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/base/error.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

std::vector<bool> none_small(const placement::Placement& placement) {
  return std::vector<bool>(placement.buckets.size(), false);
}

/// Every element of a chunk with a parameter, by its strip; in the order in which the strips' cursors come to it.
void expect_each_element_once(const placement::Placement& placement, const std::vector<bool>& small) {
  Spans spans(placement, small);
  std::uint64_t chunk = 0;
  while (chunk < placement.chunks.size()) {
    const Span& span = spans.at(chunk);
    ASSERT_EQ(span.first, chunk);
    ASSERT_GT(span.end, span.first);
    std::uint64_t at = span.first, tiles = 0;
    std::int64_t from = 0;
    for (std::uint64_t strip = 0; strip < static_cast<std::uint64_t>(placement.strips); strip++) {
      Spans::Cursor cursor(placement, span, strip, 0);
      for (std::uint64_t i = 0; i < spans.tiles(span, strip); i++, tiles++, cursor.next()) {
        while (placement.chunks[at].parameter < 0 || from == placement.chunks[at].count) at++, from = 0;
        ASSERT_EQ(cursor.tile().chunk, at);
        ASSERT_EQ(cursor.tile().from, from);
        ASSERT_GT(cursor.tile().count, 0);
        ASSERT_LE(cursor.tile().count, placement::tile_elements);
        Spans::Cursor entered(placement, span, strip, i);  // as a successor does
        ASSERT_EQ(entered.tile().chunk, at);
        ASSERT_EQ(entered.tile().from, from);
        from += cursor.tile().count;
      }
    }
    EXPECT_EQ(tiles, span.tiles);
    for (std::uint64_t i = span.first; i < span.end; i++) {
      EXPECT_EQ(placement.chunks[i].bucket, placement.chunks[chunk].bucket);
      EXPECT_EQ(placement.chunks[i].phase == placement::Phase::state,
                placement.chunks[chunk].phase == placement::Phase::state);
    }
    chunk = span.end;
  }
}

TEST(Spans, HaveEachElementOnceInOneStripOfOneBucket) {
  for (bool muon : {false, true}) {
    for (int threads : {1, 2, 5}) {
      config::Config config = muon ? Cell::muon_config() : Cell::small_config();
      config.optimizer.threads = threads;
      config.model.vocabulary = 1900;
      Cell cell(config);
      ASSERT_EQ(cell.placement.strips, threads * placement::strips_of_a_thread);
      expect_each_element_once(cell.placement, none_small(cell.placement));
      expect_each_element_once(cell.placement, std::vector<bool>(cell.placement.buckets.size(), true));
    }
  }
}

TEST(Spans, OfASmallBucketHaveAChunkAStrip) {
  config::Config config = Cell::small_config();
  config.model.vocabulary = 10000;
  Cell cell(config);
  Spans large(cell.placement, none_small(cell.placement));
  Spans small(cell.placement, std::vector<bool>(cell.placement.buckets.size(), true));
  EXPECT_EQ(small.at(0).end, static_cast<std::uint64_t>(cell.placement.strips));
  EXPECT_GT(large.at(0).end, small.at(0).end);
}

TEST(Spans, ACountBetweenTwoSpansIsDamage) {
  Cell cell(Cell::small_config());
  Spans spans(cell.placement, none_small(cell.placement));
  ASSERT_GT(spans.at(0).end, 1u);
  EXPECT_THROW(spans.at(1), Error);
  EXPECT_THROW(spans.at(cell.chunks()), Error);
}

}  // namespace
}  // namespace ganymede::optimizer
