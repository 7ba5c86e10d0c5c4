#include "tests/support/kills/kill_run.h"

/// Each service, at each kind of operation, in the first, the middle and the last bucket: minutes, of preset `full`.
namespace ganymede::test {
namespace {

class KillMatrix : public testing::TestWithParam<KillWorld> {};

TEST_P(KillMatrix, NoKillAtAnyMomentChangesABit) {
  expect_kills_change_nothing(GetParam(), [](const auto& cells) { return all_targets(cells[0]); });
}

INSTANTIATE_TEST_SUITE_P(Worlds, KillMatrix, testing::ValuesIn(kill_worlds()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ganymede::test
