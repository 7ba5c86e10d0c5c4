#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/data/dataset_format.h"

namespace ganymede::data {

/// Rows and the segments that they hold, in the form of index.bin: `rows` has one record more than there are rows.
struct PackedRows {
  std::vector<RowRecord> rows = {RowRecord{}};
  std::vector<Segment> segments;
  std::uint64_t count() const { return rows.size() - 1; }
  std::span<const Segment> row(std::uint64_t i) const {
    return std::span(segments).subspan(rows[i].first_segment, rows[i + 1].first_segment - rows[i].first_segment);
  }
  /// Adds a copy of row `i` of `from`.
  void append(const PackedRows& from, std::uint64_t i);
};

/// Concatenates `documents` (indices) in the given order and cuts the whole into rows of `seq_len` tokens; only the
/// last row may be shorter. Document d holds tokens [begin[d], begin[d+1]). Each token is in one row once, but for a
/// last row without a target (its only token would be the end of a document), which is dropped.
PackedRows pack_rows(std::span<const std::uint64_t> begin, std::span<const std::uint32_t> documents,
                     std::uint32_t seq_len);

/// The documents `items` in an order that is a pure function of (items, seed).
std::vector<std::uint32_t> shuffled(const std::vector<std::uint32_t>& items, std::uint64_t seed);

/// Cost bucket of a row: which sixteenth of seq_len² its cost lies in.
int cost_bucket(std::uint64_t cost, std::uint32_t seq_len);

/// The rows sorted by cost bucket, cheapest first, otherwise in their order; `bucket_rows` gets their number by bucket.
PackedRows sorted_by_cost(const PackedRows& rows, std::uint32_t seq_len, std::vector<std::uint64_t>& bucket_rows);

}  // namespace ganymede::data
