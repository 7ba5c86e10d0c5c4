#include "common/newton_schulz/orthogonalise.h"

#include <gtest/gtest.h>

#include "common/newton_schulz/cblas/cblas_products.h"
#include "tests/unit/newton_schulz/cases.h"

namespace ganymede::newton_schulz {
namespace {

TEST(Workspace, IsAsLargeAsTheLargestCallAndIsKept) {
  CblasProducts products;
  Workspace workspace;
  const auto call = [&](const Settings& settings, std::int64_t count, std::int64_t rows, std::int64_t cols) {
    const auto in = reference::to_fp32(reference::random_matrix(1, count * rows, cols));
    std::vector<float> out(in.size());
    orthogonalise(products, {side_by_side(in.data(), out.data(), count, rows, cols), rows, cols}, settings, workspace);
  };
  for (const auto form : both_forms) {
    const Settings settings{schedule_of("kj5"), form};
    const auto bytes = workspace_bytes(products, settings, 3, 10, 24);
    call(settings, 3, 10, 24);
    EXPECT_EQ(workspace.bytes(), bytes);
    const auto* const memory = workspace.reserve(1);
    call(settings, 3, 10, 24);
    call(settings, 2, 24, 10);
    EXPECT_EQ(workspace.bytes(), bytes);
    EXPECT_EQ(workspace.reserve(1), memory);
  }
}

TEST(Workspace, IsNoPartOfTheResult) {
  CblasProducts products;
  const Settings settings{schedule_of("quintic5"), Form::gram};
  const auto in = reference::to_fp32(reference::random_matrix(1, 10, 24));
  std::vector<float> fresh(in.size()), reused(in.size());
  Workspace clean, dirty;
  orthogonalise(products, {side_by_side(in.data(), fresh.data(), 1, 10, 24), 10, 24}, settings, clean);
  const auto bytes = workspace_bytes(products, settings, 1, 10, 24);
  std::fill_n(dirty.reserve(bytes), bytes, std::byte{0xff});  // NaN wherever it is read
  orthogonalise(products, {side_by_side(in.data(), reused.data(), 1, 10, 24), 10, 24}, settings, dirty);
  EXPECT_EQ(fresh, reused);
}

TEST(Batch, OfNothingIsNothing) {
  CblasProducts products;
  const auto three = side_by_side(nullptr, nullptr, 3, 0, 4);
  Workspace workspace;
  const Settings settings{schedule_of("kj5"), Form::automatic};
  EXPECT_FALSE(orthogonalise(products, {{}, 4, 4}, settings, workspace));
  EXPECT_FALSE(orthogonalise(products, {three, 0, 4}, settings, workspace));
  EXPECT_FALSE(orthogonalise(products, {three, 4, 0}, settings, workspace));
  EXPECT_EQ(workspace.bytes(), 0);
}

}  // namespace
}  // namespace ganymede::newton_schulz
