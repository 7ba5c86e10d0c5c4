#pragma once

#include <algorithm>

#include "services/worker/model/attention.h"

namespace ganymede::worker::model {

/// Consecutive queries of one document and the keys that they see together, in tokens.
struct AttentionBlock {
  std::int64_t query = 0, queries = 0;
  std::int64_t key = 0, keys = 0;
};

/// One document's blocks, in order.
std::vector<AttentionBlock> attention_blocks(const AttentionShape& shape, std::int64_t begin, std::int64_t end);

/// Largest number of logits of any block.
std::int64_t largest_block(const AttentionShape& shape, const std::vector<AttentionBlock>& blocks);

/// Keys of a block that query row `row` of it sees, counted from the block's first key.
struct SeenKeys {
  std::size_t begin = 0, end = 0;
};
inline SeenKeys seen_keys(const AttentionShape& shape, const AttentionBlock& block, std::int64_t row) {
  const std::int64_t token = block.query + row / shape.group();
  const std::int64_t first = shape.window > 0 ? std::max(block.key, token - shape.window + 1) : block.key;
  return {static_cast<std::size_t>(first - block.key), static_cast<std::size_t>(token + 1 - block.key)};
}

}  // namespace ganymede::worker::model
