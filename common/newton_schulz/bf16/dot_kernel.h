#pragma once

#include <cstdint>

/// What of bf16 products is written for one instruction: AVX512-BF16's dot product of pairs. One thread; nothing is
/// checked. Only where available().
namespace ganymede::newton_schulz::bf16 {

/// Whether this processor has the instruction, and nothing better (AMX, for which libtorch has kernels).
bool available();

/// Rows (of a left operand) or columns (of a right one) that are computed together. A panel holds so many of them side
/// by side, pair after pair along the inner dimension: [pairs][panel][2] bf16.
constexpr std::int64_t panel = 16;

/// A matrix of bf16, row-major.
struct Source {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;  // elements from row to row
};

/// Panels of rows [rows, inner] of `from`; what is missing to whole panels and pairs is 0. `to`: cache lines.
void pack_rows(Source from, std::int64_t rows, std::int64_t inner, std::uint32_t* to);
/// Panels of columns [inner, columns] of `from`.
void pack_columns(Source from, std::int64_t columns, std::int64_t inner, std::uint32_t* to);

/// One panel times another, a part of at most panel × panel elements of a product.
struct Block {
  const std::uint32_t *left = nullptr, *right = nullptr;
  std::int64_t pairs = 0;
  float* sums = nullptr;  // [panel, panel], kept between parts of the inner dimension; unused if all is in one part
  bool first = true, last = true;
  // What happens at the last part: out = alpha · sums + beta · addend, rounded once.
  float alpha = 1, beta = 0;
  const std::uint16_t* addend = nullptr;  // null: none
  std::uint16_t* out = nullptr;
  std::uint16_t* mirrored = nullptr;  // where the transpose of `out` goes; null: nowhere
  std::int64_t stride = 0;            // elements from row to row, of all three
  std::int64_t rows = panel, columns = panel;
};

/// The sums run over the pairs in their order, in fp32, whatever the parts: bits depend on nothing else.
void multiply(const Block& block);

}  // namespace ganymede::newton_schulz::bf16
