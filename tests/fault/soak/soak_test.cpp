#include "tests/support/kills/soak_run.h"

namespace ganymede::test {
namespace {

/// 75 seconds; preset `full` has half an hour of it (soak_long).
TEST(Soak, RandomKillsAndStopsOfAnyProcessLeaveNoTrace) {
  expect_to_outlast({.seconds = 75, .seed = 6, .leave_stopped = true});
}

}  // namespace
}  // namespace ganymede::test
