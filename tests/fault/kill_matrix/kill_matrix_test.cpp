#include "tests/support/kills/kill_run.h"

/// A slice of what preset `full` does with all targets and worlds (kill_matrix_all).
namespace ganymede::test {
namespace {

constexpr std::size_t one_of = 4;

TEST(KillMatrix, ASliceOfAllMomentsOfAllServicesChangesNoBit) {
  expect_kills_change_nothing(kill_worlds()[1], [](const std::vector<WatchedCell>& cells) {
    std::vector<KillTarget> chosen, all = all_targets(cells[0]);
    for (std::size_t i = 0; i < all.size(); i += one_of) chosen.push_back(all[i]);
    return chosen;
  });
}

}  // namespace
}  // namespace ganymede::test
