#include "common/newton_schulz/bf16/dot_kernel.h"

#include <algorithm>

// GCC 12 takes the undefined operands of its own intrinsics for uninitialized variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#define GANYMEDE_DOT [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]]

namespace ganymede::newton_schulz::bf16 {

namespace {

constexpr std::int64_t pairs_a_vector = 16;

__mmask16 first_of_16(std::int64_t count) {
  return static_cast<__mmask16>((1u << std::min<std::int64_t>(count, 16)) - 1);
}

__mmask32 first_of_32(std::int64_t count) {
  return static_cast<__mmask32>((std::uint64_t{1} << std::min<std::int64_t>(count, 32)) - 1);
}

/// Transposes 16 × 16 elements of 32 bits.
GANYMEDE_DOT [[gnu::always_inline]] inline void transpose(__m512i (&rows)[16]) {
  __m512i half[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    half[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    half[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(half[i], half[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(half[i], half[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(half[i + 1], half[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(half[i + 1], half[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    half[i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
    half[4 + i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
    half[8 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
    half[12 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(half[i], half[8 + i], 0x88);
    rows[4 + i] = _mm512_shuffle_i32x4(half[4 + i], half[12 + i], 0x88);
    rows[8 + i] = _mm512_shuffle_i32x4(half[i], half[8 + i], 0xdd);
    rows[12 + i] = _mm512_shuffle_i32x4(half[4 + i], half[12 + i], 0xdd);
  }
}

/// alpha · sums + beta · addend of one row, and where it belongs.
GANYMEDE_DOT [[gnu::always_inline]] inline __m512 finish_row(const Block& block, __m512 sums, std::int64_t row,
                                                             __mmask16 columns) {
  __m512 result = _mm512_mul_ps(sums, _mm512_set1_ps(block.alpha));
  if (block.addend != nullptr && row < block.rows) {
    const __m256i addend = _mm256_maskz_loadu_epi16(columns, block.addend + row * block.stride);
    const __m512 widened = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(addend), 16));
    result = _mm512_fmadd_ps(widened, _mm512_set1_ps(block.beta), result);
  }
  return result;
}

GANYMEDE_DOT [[gnu::always_inline]] inline void store_row(__m512 row, __mmask16 columns, std::uint16_t* to) {
  _mm256_mask_storeu_epi16(to, columns, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(row)));
}

GANYMEDE_DOT [[gnu::always_inline]] inline void finish(const Block& block, const __m512 (&sums)[panel]) {
  const __mmask16 columns = first_of_16(block.columns);
  __m512i results[panel];
#pragma GCC unroll 16
  for (int row = 0; row < panel; ++row) {
    const __m512 result = finish_row(block, sums[row], row, columns);
    if (row < block.rows) store_row(result, columns, block.out + row * block.stride);
    results[row] = _mm512_castps_si512(result);
  }
  if (block.mirrored == nullptr) return;
  transpose(results);
  const __mmask16 rows = first_of_16(block.rows);
#pragma GCC unroll 16
  for (int column = 0; column < panel; ++column) {
    if (column < block.columns)
      store_row(_mm512_castsi512_ps(results[column]), rows, block.mirrored + column * block.stride);
  }
}

}  // namespace

bool available() {
  static const bool dot = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          !__builtin_cpu_supports("amx-bf16");
  return dot;
}

GANYMEDE_DOT void pack_rows(Source from, std::int64_t rows, std::int64_t inner, std::uint32_t* to) {
  const std::int64_t pairs = (inner + 1) / 2;
  for (std::int64_t row = 0; row < rows; row += panel, to += pairs * panel) {
    for (std::int64_t pair = 0; pair < pairs; pair += pairs_a_vector) {
      const __mmask32 columns = first_of_32(inner - 2 * pair);
      __m512i values[16];
#pragma GCC unroll 16
      for (int i = 0; i < panel; ++i) {
        const bool there = row + i < rows;
        const auto* at = from.data + (there ? row + i : row) * from.stride + 2 * pair;
        values[i] = _mm512_maskz_loadu_epi16(there ? columns : 0, at);
      }
      transpose(values);
      const std::int64_t left = std::min(pairs_a_vector, pairs - pair);
#pragma GCC unroll 16
      for (int i = 0; i < pairs_a_vector; ++i) {
        if (i < left) _mm512_store_si512(to + (pair + i) * panel, values[i]);
      }
    }
  }
}

GANYMEDE_DOT void pack_columns(Source from, std::int64_t columns, std::int64_t inner, std::uint32_t* to) {
  const std::int64_t pairs = (inner + 1) / 2;
  for (std::int64_t column = 0; column < columns; column += panel, to += pairs * panel) {
    const __mmask16 there = first_of_16(columns - column);
    const auto* at = from.data + column;
    for (std::int64_t pair = 0; pair < pairs; ++pair, at += 2 * from.stride) {
      const bool second = 2 * pair + 1 < inner;
      const __m256i even = _mm256_maskz_loadu_epi16(there, at);
      const __m256i odd = _mm256_maskz_loadu_epi16(second ? there : 0, second ? at + from.stride : at);
      const __m512i both =
          _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
      _mm512_store_si512(to + pair * panel, both);
    }
  }
}

GANYMEDE_DOT void multiply(const Block& block) {
  __m512 sums[panel];
#pragma GCC unroll 16
  for (int row = 0; row < panel; ++row) {
    sums[row] = block.first ? _mm512_setzero_ps() : _mm512_load_ps(block.sums + row * panel);
  }
  const std::uint32_t *left = block.left, *right = block.right;
  for (std::int64_t pair = 0; pair < block.pairs; ++pair, left += panel, right += panel) {
    const auto columns = reinterpret_cast<__m512bh>(_mm512_load_si512(right));
#pragma GCC unroll 16
    for (int row = 0; row < panel; ++row) {
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(left[row])));
      sums[row] = _mm512_dpbf16_ps(sums[row], value, columns);
    }
  }
  if (block.last) return finish(block, sums);
#pragma GCC unroll 16
  for (int row = 0; row < panel; ++row) _mm512_store_ps(block.sums + row * panel, sums[row]);
}

}  // namespace ganymede::newton_schulz::bf16
