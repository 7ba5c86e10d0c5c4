#pragma once

#include <cstdint>
#include <span>

/// bf16 as its bits: the upper half of an fp32. Element by element, so bits depend neither on the vector width nor on
/// how an array is cut. All thread-safe; both sides have the same length.
namespace ganymede::wire {

/// To nearest, ties to even; a NaN stays one.
void encode_bf16(std::span<const float> values, std::uint16_t* to);
/// Exact.
void decode_bf16(std::span<const std::uint16_t> from, float* values);
/// sum[i] += the value of from[i], in fp32: called with one contribution after another, it sums in that order.
void add_bf16(std::span<const std::uint16_t> from, float* sum);

/// The same as a copy, and as `encode_bf16`, with stores that bypass the caches: for what another process reads later.
/// Visible to other threads after `finish_stream` of this one.
void stream_fp32(std::span<const float> values, float* to);
void stream_bf16(std::span<const float> values, std::uint16_t* to);
/// `stream_bf16`, and a plain copy of the values besides: they are read once.
void copy_and_stream_bf16(std::span<const float> values, float* copy, std::uint16_t* to);
/// Orders all streamed stores of this thread before its later stores.
void finish_stream();

}  // namespace ganymede::wire
