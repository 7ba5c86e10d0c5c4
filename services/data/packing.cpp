#include "services/data/packing.h"

#include <algorithm>

#include "common/base/random.h"

namespace ganymede::data {
namespace {

/// Ends the row that the segments added since the last record form.
void end_row(PackedRows& out, std::span<const std::uint64_t> begin) {
  RowRecord& row = out.rows.back();
  for (std::size_t i = row.first_segment; i < out.segments.size(); ++i) {
    const Segment& segment = out.segments[i];
    bool goes_on = segment.first + segment.length < begin[segment.document + 1];
    row.cost += std::uint64_t{segment.length} * segment.length;
    row.tokens += segment.length;
    row.loss_tokens += segment.length - (goes_on ? 0 : 1);
  }
  RowRecord next;
  next.first_segment = out.segments.size();
  out.rows.push_back(next);
}

}  // namespace

void PackedRows::append(const PackedRows& from, std::uint64_t i) {
  RowRecord record = from.rows[i];
  record.first_segment = segments.size();
  auto added = from.row(i);
  segments.insert(segments.end(), added.begin(), added.end());
  rows.back() = record;
  RowRecord next;
  next.first_segment = segments.size();
  rows.push_back(next);
}

PackedRows pack_rows(std::span<const std::uint64_t> begin, std::span<const std::uint32_t> documents,
                     std::uint32_t seq_len) {
  PackedRows out;
  std::uint32_t used = 0;
  for (std::uint32_t document : documents) {
    std::uint64_t first = begin[document];
    while (first < begin[document + 1]) {
      auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(begin[document + 1] - first, seq_len - used));
      out.segments.push_back({first, length, document});
      first += length;
      used += length;
      if (used == seq_len) {
        end_row(out, begin);
        used = 0;
      }
    }
  }
  if (used > 0) end_row(out, begin);
  if (out.count() > 0 && out.rows[out.count() - 1].loss_tokens == 0) {
    out.segments.resize(out.rows[out.count() - 1].first_segment);
    out.rows.pop_back();
    out.rows.back() = RowRecord{.first_segment = out.segments.size()};
  }
  return out;
}

std::vector<std::uint32_t> shuffled(const std::vector<std::uint32_t>& items, std::uint64_t seed) {
  std::vector<std::uint32_t> out(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) out[i] = items[permuted(seed, items.size(), i)];
  return out;
}

int cost_bucket(std::uint64_t cost, std::uint32_t seq_len) {
  std::uint64_t largest = std::uint64_t{seq_len} * seq_len;
  return static_cast<int>(std::min<std::uint64_t>(cost * cost_buckets / largest, cost_buckets - 1));
}

PackedRows sorted_by_cost(const PackedRows& rows, std::uint32_t seq_len, std::vector<std::uint64_t>& bucket_rows) {
  std::vector<std::vector<std::uint64_t>> buckets(cost_buckets);
  for (std::uint64_t i = 0; i < rows.count(); ++i) buckets[cost_bucket(rows.rows[i].cost, seq_len)].push_back(i);
  PackedRows out;
  bucket_rows.clear();
  for (const auto& bucket : buckets) {
    bucket_rows.push_back(bucket.size());
    for (std::uint64_t i : bucket) out.append(rows, i);
  }
  return out;
}

}  // namespace ganymede::data
