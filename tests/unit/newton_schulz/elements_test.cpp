#include "common/newton_schulz/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/newton_schulz/tiles.h"

namespace ganymede::newton_schulz {
namespace {

TEST(Elements, TheNormIsFiniteExactlyIfTheElementsAre) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(frobenius_norm(std::vector<float>{3, -4}.data(), 2), 5);
  EXPECT_EQ(frobenius_norm(std::vector<float>(17, 2).data(), 16), 8);
  EXPECT_EQ(frobenius_norm(std::vector<float>(16, most).data(), 16), 4. * most);
  for (std::size_t at = 0; at < 17; ++at) {
    std::vector<float> values(17, 1);
    values[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(frobenius_norm(values.data(), 17)));
    values[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(frobenius_norm(values.data(), 17)));
  }
}

TEST(Elements, Bf16IsRoundedToNearestAndToEven) {
  const std::vector<float> in{1, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1 + 0x1.02p-8F, -1 - 0x1.02p-8F, 0, 0x1.ffp-127F};
  std::vector<std::uint16_t> bf16(in.size());
  load_scaled(in.data(), static_cast<std::int64_t>(in.size()), 1, Element::bf16, bf16.data());
  std::vector<float> back(in.size());
  EXPECT_TRUE(store(bf16.data(), static_cast<std::int64_t>(in.size()), Element::bf16, back.data()));
  EXPECT_EQ(back, (std::vector<float>{1, 1, 1 + 0x1p-6F, 1 + 0x1p-7F, -1 - 0x1p-7F, 0, 0x1p-126F}));
}

TEST(Elements, StoreSaysWhetherAllIsFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> in{1, 2, bad};
    std::vector<float> out(3);
    EXPECT_FALSE(store(in.data(), 3, Element::fp32, out.data()));
    EXPECT_TRUE(store(in.data(), 2, Element::fp32, out.data()));
    EXPECT_EQ(out[1], 2);
  }
}

TEST(Tiles, CoverEveryElementOnce) {
  struct Case {
    std::int64_t rows, cols;
    bool symmetric;
  };
  for (const auto& [rows, cols, symmetric] :
       {Case{5, 13, false}, {13, 5, false}, {4, 8, false}, {13, 13, true}, {3, 3, true}, {8, 8, true}}) {
    std::vector<float> out(static_cast<std::size_t>(2 * rows * cols));
    const Product product{2, {}, {}, {out.data(), rows, cols}, 1, 0, {}, symmetric};
    std::vector<int> seen(out.size());
    for (std::int64_t i = 0; i < tiles_of(product, 4); ++i) {
      const auto tile = tile_at(product, 4, i);
      for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
        for (std::int64_t col = tile.col; col < tile.col + tile.cols; ++col) {
          const auto at = static_cast<std::size_t>((tile.matrix * rows + row) * cols + col);
          ++seen[at];
          out[at] = static_cast<float>(std::min(row, col) * 100 + std::max(row, col) + 1);
        }
      }
      if (symmetric) mirror(product, tile, Element::fp32);
    }
    for (std::int64_t i = 0; i < 2 * rows * cols; ++i) {
      const std::int64_t row = i / cols % rows, col = i % cols;
      const auto at = static_cast<std::size_t>(i);
      if (symmetric) {
        EXPECT_EQ(seen[at], row / 4 <= col / 4) << row << " " << col;
        EXPECT_EQ(out[at], static_cast<float>(std::min(row, col) * 100 + std::max(row, col) + 1));
      } else {
        EXPECT_EQ(seen[at], 1) << row << " " << col;
      }
    }
  }
}

}  // namespace
}  // namespace ganymede::newton_schulz
