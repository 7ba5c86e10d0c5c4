#include "tests/support/kills/soak_run.h"

namespace ganymede::test {
namespace {

/// Three minutes; preset `full` has half an hour of it (soak_long).
TEST(Soak, RandomKillsAndStopsOfAnyProcessLeaveNoTrace) {
  expect_to_outlast({.seconds = 180, .seed = 6, .leave_stopped = true});
}

}  // namespace
}  // namespace ganymede::test
