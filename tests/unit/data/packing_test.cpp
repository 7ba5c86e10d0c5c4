#include "services/data/packing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ganymede::data {
namespace {

std::vector<std::uint64_t> begins(const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> begin = {0};
  for (std::uint64_t length : lengths) begin.push_back(begin.back() + length);
  return begin;
}

std::vector<std::uint32_t> all(std::size_t count) {
  std::vector<std::uint32_t> documents(count);
  std::iota(documents.begin(), documents.end(), 0);
  return documents;
}

TEST(Packing, EveryTokenIsInOneRowOnce) {
  std::vector<std::uint64_t> lengths;
  for (int i = 0; i < 500; ++i) lengths.push_back(2 + i * 13 % 97);
  auto begin = begins(lengths);
  PackedRows rows = pack_rows(begin, shuffled(all(lengths.size()), 3), 64);
  std::vector<int> seen(begin.back());
  for (std::uint64_t i = 0; i < rows.count(); ++i) {
    std::uint64_t used = 0;
    for (const Segment& segment : rows.row(i)) {
      used += segment.length;
      ASSERT_GE(segment.first, begin[segment.document]);
      ASSERT_LE(segment.first + segment.length, begin[segment.document + 1]);
      for (std::uint32_t k = 0; k < segment.length; ++k) ++seen[segment.first + k];
    }
    EXPECT_EQ(used, rows.rows[i].tokens);
    EXPECT_TRUE(used == 64 || i + 1 == rows.count());
  }
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), std::uint64_t{0}), begin.back());
  EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 1);
}

TEST(Packing, CountsCostAndLossTokensOfARow) {
  // Documents of 3, 4 and 6 tokens in rows of 8: the third is cut after its first token.
  PackedRows rows = pack_rows(begins({3, 4, 6}), all(3), 8);
  ASSERT_EQ(rows.count(), 2u);
  EXPECT_EQ(rows.rows[0].cost, 9u + 16u + 1u);
  EXPECT_EQ(rows.rows[0].loss_tokens, 2u + 3u + 1u);  // the cut document has a target for its last position
  EXPECT_EQ(rows.rows[1].cost, 25u);
  EXPECT_EQ(rows.rows[1].loss_tokens, 4u);
  EXPECT_EQ(rows.rows[1].tokens, 5u);
}

TEST(Packing, DropsALastRowThatHasNoTarget) {
  // Nine tokens in rows of eight: the last one would be alone with the end of its document.
  PackedRows rows = pack_rows(begins({9}), all(1), 8);
  ASSERT_EQ(rows.count(), 1u);
  EXPECT_EQ(rows.rows[1].first_segment, rows.segments.size());
  EXPECT_EQ(rows.segments.size(), 1u);
}

TEST(Packing, LongDocumentIsCutIntoFullRows) {
  PackedRows rows = pack_rows(begins({1000}), all(1), 16);
  EXPECT_EQ(rows.count(), 63u);
  EXPECT_EQ(rows.rows[0].cost, 256u);
}

TEST(Packing, NothingGivesNoRows) { EXPECT_EQ(pack_rows(begins({}), {}, 16).count(), 0u); }

TEST(Packing, SortingByCostKeepsRowsAndOrdersBuckets) {
  std::vector<std::uint64_t> lengths;
  for (int i = 0; i < 300; ++i) lengths.push_back(i % 3 == 0 ? 200 : 2 + i % 20);
  PackedRows rows = pack_rows(begins(lengths), shuffled(all(lengths.size()), 1), 64);
  std::vector<std::uint64_t> buckets;
  PackedRows sorted = sorted_by_cost(rows, 64, buckets);
  ASSERT_EQ(sorted.count(), rows.count());
  EXPECT_EQ(std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0}), rows.count());
  std::uint64_t row = 0;
  for (int bucket = 0; bucket < cost_buckets; ++bucket)
    for (std::uint64_t k = 0; k < buckets[bucket]; ++k, ++row)
      EXPECT_EQ(cost_bucket(sorted.rows[row].cost, 64), bucket);
  std::vector<std::uint64_t> before, after;
  for (const Segment& segment : rows.segments) before.push_back(segment.first);
  for (const Segment& segment : sorted.segments) after.push_back(segment.first);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(before, after);
}

TEST(Packing, ShuffleIsAPermutationKeyedBySeed) {
  auto items = all(100);
  auto one = shuffled(items, 1), again = shuffled(items, 1), other = shuffled(items, 2);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
  EXPECT_NE(one, items);
  std::sort(one.begin(), one.end());
  EXPECT_EQ(one, items);
}

}  // namespace
}  // namespace ganymede::data
