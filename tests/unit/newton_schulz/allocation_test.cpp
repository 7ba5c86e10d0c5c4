#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "common/newton_schulz/cblas/cblas_products.h"
#include "tests/unit/newton_schulz/cases.h"

namespace {

std::atomic<int> allocations{0};

}  // namespace

// Not inlined: where only one of a pair is, the compiler takes them for mismatched.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ganymede::newton_schulz {
namespace {

TEST(Workspace, LeavesNothingToAllocateInTheSecondCall) {
  CblasProducts products;
  const auto in = reference::to_fp32(reference::random_matrix(1, 3 * 10, 24));
  std::vector<float> out(in.size());
  const auto places = side_by_side(in.data(), out.data(), 3, 10, 24);
  for (const auto form : both_forms) {
    const Settings settings{schedule_of("kj5"), form};
    Workspace workspace;
    const auto call = [&] { orthogonalise(products, {places, 10, 24}, settings, workspace); };
    call();
    const auto* const memory = workspace.reserve(1);
    const int before = allocations;
    call();
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(workspace.reserve(1), memory);
  }
}

}  // namespace
}  // namespace ganymede::newton_schulz
