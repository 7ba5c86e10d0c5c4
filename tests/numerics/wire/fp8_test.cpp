#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "common/wire/bf16.h"
#include "common/wire/fp8.h"

/// The codec against libtorch's own casts, bit by bit.
namespace ganymede::wire {
namespace {

constexpr std::int64_t rows = 64, columns = 1000;  // seven blocks and a tail of 104

/// Random matrices whose blocks differ by many orders of magnitude, as weights of different layers do.
at::Tensor matrix(std::uint64_t seed) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  float* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < rows * columns; i++) {
    auto key = static_cast<std::uint64_t>(i);
    double block = std::pow(10.0, 12 * uniform(seed, 7, key / 500) - 9),
           small = std::pow(2.0, -14 * uniform(seed, 8, key));
    out[i] = static_cast<float>((uniform(seed, 9, key) - 0.5) * block * small);
  }
  return values;
}

struct Encoded {
  at::Tensor scales;  // fp32 [rows, blocks]
  at::Tensor codes;   // e4m3fn [rows, columns]
};

/// The definition, in libtorch.
Encoded by_torch(const at::Tensor& values) {
  std::vector<at::Tensor> scales, codes;
  for (std::int64_t first = 0; first < columns; first += fp8_block) {
    at::Tensor block = values.slice(1, first, std::min(first + fp8_block, columns));
    at::Tensor scale = block.abs().amax(1, true) / 448;
    scales.push_back(scale);
    codes.push_back((block / scale).clamp(-448, 448).to(at::kFloat8_e4m3fn).view(at::kByte));
  }
  return {at::cat(scales, 1), at::cat(codes, 1).view(at::kFloat8_e4m3fn)};
}

at::Tensor by_torch(const Encoded& encoded, at::ScalarType type) {
  at::Tensor scales = encoded.scales.repeat_interleave(fp8_block, 1).slice(1, 0, columns);
  return (encoded.codes.to(at::kFloat) * scales).to(type);
}

std::vector<std::byte> encode(const at::Tensor& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows * fp8_row_bytes(columns)));
  NonFinite found = encode_fp8(values.data_ptr<float>(), columns, 0, rows * fp8_blocks(columns), bytes.data());
  EXPECT_EQ(found.count, 0);
  return bytes;
}

at::Tensor decode(const std::vector<std::byte>& bytes, at::ScalarType type) {
  at::Tensor values = at::empty({rows, columns}, type);
  if (type == at::kFloat) {
    decode_fp8(bytes.data(), rows, columns, values.data_ptr<float>());
  } else {
    decode_fp8(bytes.data(), rows, columns, reinterpret_cast<std::uint16_t*>(values.data_ptr()));
  }
  return values;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

TEST(Fp8AgainstTorch, RandomBlocksHaveTheSameScalesCodesAndValues) {
  for (std::uint64_t seed = 0; seed < 8; seed++) {
    at::Tensor values = matrix(seed);
    Encoded expected = by_torch(values);
    std::vector<std::byte> bytes = encode(values);
    for (std::int64_t row = 0; row < rows; row++) {
      const std::byte* at = bytes.data() + row * fp8_row_bytes(columns);
      ASSERT_EQ(std::memcmp(at, expected.scales[row].data_ptr(), static_cast<std::size_t>(fp8_blocks(columns)) * 4), 0);
      ASSERT_EQ(std::memcmp(at + fp8_blocks(columns) * 4, expected.codes[row].data_ptr(), columns), 0) << row;
    }
    EXPECT_TRUE(same_bits(decode(bytes, at::kFloat), by_torch(expected, at::kFloat)));
    EXPECT_TRUE(same_bits(decode(bytes, at::kBFloat16), by_torch(expected, at::kBFloat16)));
  }
}

TEST(Fp8AgainstTorch, All256CodesHaveTheSameValues) {
  at::Tensor codes = at::arange(256, at::kByte);
  at::Tensor expected = codes.view(at::kFloat8_e4m3fn).to(at::kFloat);
  std::vector<std::byte> row(static_cast<std::size_t>(fp8_row_bytes(256)));
  for (float scale : {1.0f, 0.37f}) {
    for (std::size_t block : {0u, 1u}) std::memcpy(row.data() + 4 * block, &scale, 4);
    std::memcpy(row.data() + 8, codes.data_ptr(), 256);
    at::Tensor values = at::empty({256}, at::kFloat);
    decode_fp8(row.data(), 1, 256, values.data_ptr<float>());
    at::Tensor both_nan = values.isnan().logical_and(expected.isnan());
    EXPECT_EQ(both_nan.sum().item<std::int64_t>(), 2);
    EXPECT_TRUE(values.eq(expected * scale).logical_or(both_nan).all().item<bool>());
    EXPECT_TRUE(values.signbit().eq(expected.signbit()).logical_or(both_nan).all().item<bool>());
  }
}

TEST(Fp8AgainstTorch, EveryMultipleThatTheCastCanSeeHasTheSameCode) {
  // Scale 1: all fp32 values with 12 bits of mantissa over the range of E4M3, so every tie and its neighbours.
  std::vector<float> values;
  for (int exponent = -13; exponent <= 8; exponent++) {
    for (int i = 0; i < 4096; i++) values.push_back(std::ldexp(1.0f + static_cast<float>(i) / 4096, exponent));
  }
  for (std::size_t i = 0; i < values.size(); i++) values[i] = std::min(values[i], 448.0f) * (i % 2 == 0 ? 1.0f : -1.0f);
  at::Tensor expected =
      at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}).to(at::kFloat8_e4m3fn).view(at::kByte);
  std::vector<std::byte> row(static_cast<std::size_t>(fp8_row_bytes(128)));
  for (std::size_t first = 0; first < values.size(); first += 127) {
    std::vector<float> block(128, 448);
    std::size_t count = std::min<std::size_t>(127, values.size() - first);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), count, block.begin());
    encode_fp8(block.data(), 128, 0, 1, row.data());
    ASSERT_EQ(std::memcmp(row.data() + 4, expected.data_ptr<std::uint8_t>() + first, count), 0) << first;
  }
}

TEST(Fp8AgainstTorch, ErrorsAreWithinTheirBounds) {
  double worst_fp32 = 0, worst_bf16 = 0;
  for (std::uint64_t seed = 20; seed < 40; seed++) {
    at::Tensor values = matrix(seed);
    std::vector<std::byte> bytes = encode(values);
    std::vector<at::Tensor> most;
    for (at::Tensor& block : at::split(values, fp8_block, 1)) {
      most.push_back(block.abs().amax(1, true).expand({rows, block.size(1)}));
    }
    at::Tensor largest = at::cat(most, 1).to(at::kDouble);
    auto worst = [&](at::ScalarType type) {
      at::Tensor error = (decode(bytes, type).to(at::kDouble) - values.to(at::kDouble)).abs() / largest;
      return error.max().item<double>();
    };
    worst_fp32 = std::max(worst_fp32, worst(at::kFloat));
    worst_bf16 = std::max(worst_bf16, worst(at::kBFloat16));
  }
  EXPECT_LE(worst_fp32, 0.0358);
  EXPECT_LE(worst_bf16, 0.0397);
  EXPECT_GE(worst_fp32, 0.034) << "the test has come near the bound";
}

TEST(Bf16AgainstTorch, HasTheSameBits) {
  at::Tensor values = matrix(50);
  at::Tensor half = at::empty({rows, columns}, at::kBFloat16);
  auto* bits = reinterpret_cast<std::uint16_t*>(half.data_ptr());
  encode_bf16({values.data_ptr<float>(), static_cast<std::size_t>(values.numel())}, bits);
  EXPECT_TRUE(same_bits(half, values.to(at::kBFloat16)));
  at::Tensor back = at::empty({rows, columns}, at::kFloat);
  decode_bf16({bits, static_cast<std::size_t>(values.numel())}, back.data_ptr<float>());
  EXPECT_TRUE(same_bits(back, half.to(at::kFloat)));
}

}  // namespace
}  // namespace ganymede::wire
