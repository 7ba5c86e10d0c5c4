#include <random>

#include "tests/support/kills/soak_run.h"

namespace ganymede::test {
namespace {

/// Half an hour, others every time: the seed is printed.
TEST(Soak, HalfAnHourOfRandomKillsAndStopsOfAnyProcessLeavesNoTrace) {
  std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  expect_to_outlast({.seconds = 1800, .seed = seed, .leave_stopped = true});
}

}  // namespace
}  // namespace ganymede::test
