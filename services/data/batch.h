#pragma once

#include <cstdint>
#include <span>

#include "services/data/dataset.h"

namespace ganymede::data {

/// Where the content of consecutive rows goes; each span has rows · seq_len elements.
struct RowArrays {
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> targets;    // the next token of the same document, -1 where there is none
  std::span<std::int32_t> documents;  // ordinal of the document in its row, from 0; padding has one of its own

  RowArrays row(std::size_t i, std::size_t seq_len) const {
    return {tokens.subspan(i * seq_len, seq_len), targets.subspan(i * seq_len, seq_len),
            documents.subspan(i * seq_len, seq_len)};
  }
};

/// Writes row `i` of the dataset into arrays of seq_len elements. The last position of a row whose document goes on
/// in another row has a target too. Padding is token 0 without a target. Throws Error when the dataset is damaged.
void fill_row(const Dataset& dataset, std::uint64_t i, const RowArrays& out);

/// A row of padding alone.
void fill_padding(const RowArrays& out);

/// Hash of what the arrays hold.
std::uint64_t content_hash(const RowArrays& arrays);

}  // namespace ganymede::data
