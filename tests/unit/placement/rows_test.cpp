#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/placement/placement.h"

namespace ganymede::placement {
namespace {

TEST(RowsOf, AStepAreSharedInRankOrder) {
  config::Config config;
  config.parallel.ranks = 3;
  config.data.rows_per_step = 12;
  for (int rank = 0; rank < 3; rank++) {
    EXPECT_EQ(rows_of(config, rank).first, 4 * rank);
    EXPECT_EQ(rows_of(config, rank).count, 4);
  }
  config.data.rows_per_step = 7;
  try {
    rows_of(config, 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("nearest that can is 6"));
  }
}

}  // namespace
}  // namespace ganymede::placement
