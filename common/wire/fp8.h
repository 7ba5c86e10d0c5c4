#pragma once

#include <cstddef>
#include <cstdint>

/// FP8 blocks: E4M3 values (no infinities, ±448 the largest) with one fp32 scale for every 128 of a row.
///
///     matrix := row*
///     row    := scale:f32[blocks] code:u8[elements] zero:u8[-elements mod 4]     blocks = ⌈elements / 128⌉
///
/// Blocks run along rows and the last one of a row may be short, so bytes do not depend on how rows are shared out,
/// and any run of whole rows is one run of bytes. In memory of this machine's byte order, rows on 4 bytes.
///
/// scale = (largest magnitude of the block) / 448, code = value / scale to the nearest E4M3, ties to even, value ≈
/// code · scale; all in fp32. A block of zeros has scale 0. A block with a NaN or an infinity has scale NaN and all
/// its codes NaN: it decodes to NaN throughout. |value − decoded| ≤ 3.58% of the block's largest magnitude (3.97%
/// after rounding to bf16); where that is below 448 · 2⁻¹²⁶ the scale is rounded up to the next subnormal number and
/// the error is ≤ 6.7%, or one step of fp32.
namespace ganymede::wire {

constexpr std::int64_t fp8_block = 128;

constexpr std::int64_t fp8_blocks(std::int64_t row_elements) { return (row_elements + fp8_block - 1) / fp8_block; }
/// Bytes of an encoded row.
constexpr std::int64_t fp8_row_bytes(std::int64_t row_elements) {
  return fp8_blocks(row_elements) * 4 + (row_elements + 3) / 4 * 4;
}

/// Values that are NaN or infinite.
struct NonFinite {
  std::int64_t count = 0;
  std::int64_t first = -1;  // element; -1: none
};

/// Encodes `blocks` consecutive blocks of a matrix with rows of `row_elements`, from block `first_block` of the row
/// whose encoded form begins at `row` on, into the following rows where that one ends. `values`: the first element of
/// the first block. Writes the blocks' own scales and codes, and the zeros behind a row with its last block; so
/// threads may encode different blocks of a row. NonFinite::first counts from `values`. Thread-safe.
NonFinite encode_fp8(const float* values, std::int64_t row_elements, std::int64_t first_block, std::int64_t blocks,
                     std::byte* row);

/// Decodes whole rows, to fp32 or from there to bf16 (its bits, to nearest, ties to even). Thread-safe.
void decode_fp8(const std::byte* encoded, std::int64_t rows, std::int64_t row_elements, float* values);
void decode_fp8(const std::byte* encoded, std::int64_t rows, std::int64_t row_elements, std::uint16_t* values);

}  // namespace ganymede::wire
