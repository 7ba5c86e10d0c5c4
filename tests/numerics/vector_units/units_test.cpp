#include <gtest/gtest.h>

#include <bit>

#include "tests/numerics/vector_units/comparison.h"
#include "tests/numerics/vector_units/results.h"
#include "tests/support/only_vector_unit.h"

namespace ganymede::vector_units {
namespace {

/// Bits of hwy::SupportedTargets() of units without fused multiply-add.
bool fuses(std::int64_t unit) {
  std::string name = hwy::TargetName(unit);
  return name != "SSSE3" && name != "SSE4" && name != "EMU128" && name != "SCALAR";
}

/// All units of the machine that the test runs on.
TEST(VectorUnits, OptimizersHaveTheBitsOfTheScalarFormula) {
  std::vector<Result> fused = optimizer_results(scalar_reference(true));
  std::vector<Result> separate = optimizer_results(scalar_reference(false));
  for (std::int64_t units = hwy::SupportedTargets() & HWY_TARGETS; units != 0; units &= units - 1) {
    OnlyVectorUnit only(units & -units);
    SCOPED_TRACE(hwy::TargetName(units & -units));
    expect_same(optimizer_results(kernels()), fuses(units & -units) ? fused : separate);
  }
}

TEST(VectorUnits, FusedAndSeparateMultiplyAddsAreToldApart) {
  std::vector<Result> fused = optimizer_results(scalar_reference(true));
  EXPECT_NE(first_difference(fused, optimizer_results(scalar_reference(false))), "");
}

TEST(VectorUnits, ConversionsSumsAndCopiesHaveTheSameBitsOnAll) {
  std::vector<Result> widest = wire_results();
  for (std::int64_t units = hwy::SupportedTargets() & HWY_TARGETS; units != 0; units &= units - 1) {
    OnlyVectorUnit only(units & -units);
    SCOPED_TRACE(hwy::TargetName(units & -units));
    expect_same(wire_results(), widest);
  }
}

}  // namespace
}  // namespace ganymede::vector_units
