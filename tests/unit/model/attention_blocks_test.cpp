#include "services/worker/model/attention_blocks.h"

#include <gtest/gtest.h>

namespace ganymede::worker::model {
namespace {

AttentionShape shape(std::int64_t heads, std::int64_t kv_heads, std::int64_t window) {
  return {heads, kv_heads, 16, 16, window, 1};
}

TEST(AttentionBlocks, EveryQuerySeesExactlyItsKeys) {
  for (const std::int64_t window : {0, 1, 7, 100, 5000}) {
    for (const std::int64_t heads : {1, 6, 64}) {
      const auto s = shape(heads, heads == 6 ? 3 : 1, window);
      const std::int64_t begin = 40, end = 900;
      std::int64_t next = begin;
      for (const auto& block : attention_blocks(s, begin, end)) {
        EXPECT_EQ(block.query, next);
        for (std::int64_t row = 0; row < block.queries * s.group(); ++row) {
          const std::int64_t token = block.query + row / s.group();
          const auto seen = seen_keys(s, block, row);
          EXPECT_EQ(block.key + static_cast<std::int64_t>(seen.begin),
                    window == 0 ? begin : std::max(begin, token - window + 1));
          EXPECT_EQ(block.key + static_cast<std::int64_t>(seen.end), token + 1);
          EXPECT_LE(static_cast<std::int64_t>(seen.end), block.keys);
        }
        next += block.queries;
      }
      EXPECT_EQ(next, end);
    }
  }
}

TEST(AttentionBlocks, WorkOfASlidingWindowGrowsWithTheLengthNotItsSquare) {
  const auto work = [](std::int64_t tokens) {
    std::int64_t total = 0;
    for (const auto& block : attention_blocks(shape(1, 1, 128), 0, tokens)) total += block.queries * block.keys;
    return total;
  };
  EXPECT_LE(work(16384), 16384 * 128 * 3 / 2);
  EXPECT_LE(work(32768), 2 * work(16384) + 128 * 128);
}

TEST(AttentionBlocks, LogitsOfALongDocumentAreBounded) {
  const auto s = shape(64, 8, 0);
  EXPECT_LE(largest_block(s, attention_blocks(s, 0, 1 << 20)), 8 << 20);
}

TEST(AttentionBlocks, EmptyDocumentHasNone) { EXPECT_TRUE(attention_blocks(shape(1, 1, 0), 5, 5).empty()); }

}  // namespace
}  // namespace ganymede::worker::model
