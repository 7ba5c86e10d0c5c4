#include "services/data/batch.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/hash.h"

namespace ganymede::data {
namespace {

void fill_segment(const Dataset& dataset, const Segment& segment, std::int32_t ordinal, const RowArrays& out) {
  std::size_t length = segment.length;
  dataset.tokens(segment.first, out.tokens.first(length));
  std::copy_n(out.tokens.begin() + 1, length - 1, out.targets.begin());
  std::int32_t& last = out.targets[length - 1];
  last = -1;
  std::uint64_t end = segment.first + length;
  if (end < dataset.document_begin(segment.document + 1)) dataset.tokens(end, std::span(&last, 1));
  std::fill_n(out.documents.begin(), length, ordinal);
}

RowArrays tail(const RowArrays& arrays, std::size_t from) {
  return {arrays.tokens.subspan(from), arrays.targets.subspan(from), arrays.documents.subspan(from)};
}

void pad(const RowArrays& out, std::int32_t ordinal) {
  std::fill(out.tokens.begin(), out.tokens.end(), 0);
  std::fill(out.targets.begin(), out.targets.end(), -1);
  std::fill(out.documents.begin(), out.documents.end(), ordinal);
}

}  // namespace

void fill_row(const Dataset& dataset, std::uint64_t i, const RowArrays& out) {
  GANYMEDE_CHECK(out.tokens.size() == static_cast<std::size_t>(dataset.meta().seq_len), "a row of {} tokens",
                 out.tokens.size());
  Row row = dataset.row(i);
  RowArrays left = out;
  std::int32_t ordinal = 0;
  for (const Segment& segment : row.segments) {
    fill_segment(dataset, segment, ordinal++, left);
    left = tail(left, segment.length);
  }
  pad(left, ordinal);
}

void fill_padding(const RowArrays& out) { pad(out, 0); }

std::uint64_t content_hash(const RowArrays& arrays) {
  std::uint64_t hash = hash64(std::as_bytes(arrays.tokens));
  hash = hash64(std::as_bytes(arrays.targets), hash);
  return hash64(std::as_bytes(arrays.documents), hash);
}

}  // namespace ganymede::data
