#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <thread>
#include <vector>

#include "common/newton_schulz/bf16/dot_kernel.h"
#include "common/newton_schulz/bf16/tile_product.h"
#include "tests/unit/newton_schulz/reference.h"

namespace ganymede::newton_schulz {
namespace {

using Bf16 = std::vector<std::uint16_t>;

float to_fp32(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

/// The upper half of fp32: which numbers these are does not matter, only that they are exact in bf16.
Bf16 cut(const reference::Matrix& matrix) {
  Bf16 values;
  for (const float value : reference::to_fp32(matrix))
    values.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return values;
}

reference::Matrix exact(const Bf16& values, std::int64_t rows, std::int64_t cols) {
  std::vector<float> fp32;
  for (const std::uint16_t value : values) fp32.push_back(to_fp32(value));
  return reference::from_fp32(fp32.data(), rows, cols);
}

/// A product of one matrix with the memory that it names.
struct Case {
  Case(std::int64_t rows, std::int64_t inner, std::int64_t cols, bool left_transposed, bool right_transposed)
      : left(cut(reference::random_matrix(1, left_transposed ? inner : rows, left_transposed ? rows : inner))),
        right(cut(reference::random_matrix(2, right_transposed ? cols : inner, right_transposed ? inner : cols))),
        addend(cut(reference::random_matrix(3, rows, cols))),
        out(addend.size(), 0x7fc0) {
    product.count = 1;
    product.left = {{left.data(), left_transposed ? inner : rows, left_transposed ? rows : inner}, left_transposed};
    product.right = {{right.data(), right_transposed ? cols : inner, right_transposed ? inner : cols},
                     right_transposed};
    product.out = {out.data(), rows, cols};
    product.addend = {addend.data(), rows, cols};
    product.alpha = 2.5;
    product.beta = -.5;
  }

  static reference::Matrix operand(const Operand& operand, const Bf16& values) {
    const auto matrix = exact(values, operand.matrices.rows, operand.matrices.cols);
    return operand.transposed ? reference::transposed(matrix) : matrix;
  }
  reference::Matrix expected() const {
    const auto product_of_both = reference::product(operand(product.left, left), operand(product.right, right));
    return reference::sum(product.alpha, product_of_both, product.beta,
                          exact(addend, product.out.rows, product.out.cols));
  }

  Bf16 left, right, addend, out;
  Product product;
};

class Bf16Products : public testing::Test {
 protected:
  void SetUp() override {
    if (!bf16::available()) GTEST_SKIP() << "this processor has no AVX512-BF16, or AMX";
  }
};

TEST_F(Bf16Products, AreThoseOfPlainLoopsRoundedOnce) {
  for (const std::int64_t inner : {1, 31, 64, 1101}) {
    for (const bool left : {false, true}) {
      for (const bool right : {false, true}) {
        Case one(37, inner, 53, left, right);
        bf16::multiply_alone(one.product);
        const auto expected = one.expected();
        // Half a unit in the last of 8 binary digits, and what the sums in fp32 have lost.
        const double sums = 1e-6 * std::sqrt(static_cast<double>(inner)) * reference::largest(expected);
        for (std::size_t i = 0; i < one.out.size(); ++i) {
          EXPECT_NEAR(to_fp32(one.out[i]), expected.values[i], std::abs(expected.values[i]) * 0x1p-8 + sums)
              << inner << left << right << " at " << i;
        }
      }
    }
  }
}

TEST_F(Bf16Products, DoNotDependOnTiles) {
  Case one(150, 600, 170, false, false);
  bf16::multiply_alone(one.product);
  const Bf16 whole = one.out;
  for (const std::int64_t size : {16, 48, 128}) {
    std::fill(one.out.begin(), one.out.end(), 0);
    for (std::int64_t i = 0; i < tiles_of(one.product, size); ++i)
      bf16::multiply_tile(one.product, tile_at(one.product, size, i));
    EXPECT_EQ(one.out, whole) << size;
  }
}

TEST_F(Bf16Products, OfAMatrixAndItsTransposeAreMirroredToTheSameBits) {
  for (const bool tall : {false, true}) {
    for (const std::int64_t size : {16, 64, 512}) {
      Case one(150, 600, 150, tall, !tall);
      one.product.beta = 0;
      one.product.right.matrices = one.product.left.matrices;
      bf16::multiply_alone(one.product);
      const Bf16 whole = one.out;
      std::fill(one.out.begin(), one.out.end(), 0);
      one.product.symmetric = true;
      for (std::int64_t i = 0; i < tiles_of(one.product, size); ++i)
        bf16::multiply_tile(one.product, tile_at(one.product, size, i));
      EXPECT_EQ(one.out, whole) << tall << " " << size;
    }
  }
}

TEST_F(Bf16Products, PassOnWhatIsNotFinite) {
  Case one(20, 33, 20, false, false);
  one.left[33 * 18 + 32] = 0x7f80;  // infinity, in the last row's neighbour and the odd column
  bf16::multiply_alone(one.product);
  for (std::size_t i = 0; i < one.out.size(); ++i) EXPECT_EQ(std::isfinite(to_fp32(one.out[i])), i / 20 != 18) << i;
}

}  // namespace
}  // namespace ganymede::newton_schulz
