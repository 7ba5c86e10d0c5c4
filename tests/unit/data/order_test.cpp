#include "services/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "common/base/error.h"

namespace ganymede::data {
namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

std::vector<std::uint64_t> positions(const Order& order, std::uint64_t begin, std::uint64_t count) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t p = begin; p < begin + count; ++p) rows.push_back(order.row_at(p));
  return rows;
}

struct Shape {
  std::vector<std::uint64_t> buckets;
  std::uint64_t rows_per_step, balance_group;
};

const Shape shapes[] = {{{0, 5, 0, 12}, 1, 1}, {{40, 3, 57}, 4, 1},    {{100}, 4, 8},      {{7}, 7, 1},
                        {{7}, 5, 1},           {{13, 1, 90, 3}, 6, 3}, {{97}, 16, 2},      {{1}, 1, 1},
                        {{1000, 24}, 8, 1000}, {{11, 12, 13}, 12, 1},  {{250, 250}, 10, 4}};

TEST(Order, EveryRowOnceAnEpochForAnyShape) {
  for (const Shape& shape : shapes) {
    Order order(shape.buckets, 42, shape.rows_per_step, shape.balance_group);
    std::vector<std::uint64_t> all(order.rows());
    std::iota(all.begin(), all.end(), 0);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      auto rows = positions(order, epoch * order.rows(), order.rows());
      std::sort(rows.begin(), rows.end());
      ASSERT_EQ(rows, all) << order.rows() << " rows, " << shape.rows_per_step << " a step, epoch " << epoch;
    }
  }
}

TEST(Order, StepsAreConsecutivePositions) {
  for (const Shape& shape : shapes) {
    Order order(shape.buckets, 7, shape.rows_per_step, shape.balance_group);
    for (std::uint64_t step = 1; step < 40; ++step)
      ASSERT_EQ(order.step_rows(step), positions(order, (step - 1) * shape.rows_per_step, shape.rows_per_step));
  }
}

/// Largest difference of cost buckets inside one step.
std::uint64_t spread(const Order& order, const std::vector<std::uint64_t>& buckets, std::uint64_t step) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t row : order.step_rows(step)) {
    std::uint64_t bucket = 0, end = buckets[0];
    while (row >= end) end += buckets[++bucket];
    seen.insert(bucket);
  }
  return *seen.rbegin() - *seen.begin();
}

TEST(Order, RowsOfAStepCostAlike) {
  std::vector<std::uint64_t> buckets(16, 60);
  Order order(buckets, 1, 7, 1);
  for (std::uint64_t step = 1; step <= 5 * sum(buckets) / 7; ++step)
    EXPECT_LE(spread(order, buckets, step), 1u) << "step " << step;
}

TEST(Order, EveryStretchOfTrainingSeesCheapAndDearRows) {
  std::vector<std::uint64_t> buckets(16, 64);
  Order order(buckets, 1, 8, 1);
  for (std::uint64_t first = 1; first + 16 <= sum(buckets) / 8; first += 16) {
    std::set<std::uint64_t> halves;
    for (std::uint64_t step = first; step < first + 16; ++step)
      for (std::uint64_t row : order.step_rows(step)) halves.insert(row / 512);
    EXPECT_EQ(halves.size(), 2u);
  }
}

TEST(Order, LargerGroupsMixMoreCosts) {
  std::vector<std::uint64_t> buckets(16, 64);
  Order order(buckets, 1, 8, 1000);
  std::uint64_t widest = 0;
  for (std::uint64_t step = 1; step <= 20; ++step) widest = std::max(widest, spread(order, buckets, step));
  EXPECT_GE(widest, 8u);
}

TEST(Order, EpochsAndSeedsDiffer) {
  Order order({64}, 1, 4, 1), again({64}, 1, 4, 1), other({64}, 2, 4, 1);
  EXPECT_EQ(positions(order, 0, 200), positions(again, 0, 200));
  EXPECT_NE(positions(order, 0, 64), positions(order, 64, 64));
  EXPECT_NE(positions(order, 0, 64), positions(other, 0, 64));
  // Rows that met in a step do not meet in every epoch.
  auto first = order.step_rows(1);
  std::sort(first.begin(), first.end());
  for (std::uint64_t step = 17; step <= 32; ++step) {
    auto rows = order.step_rows(step);
    std::sort(rows.begin(), rows.end());
    EXPECT_NE(rows, first);
  }
}

TEST(Order, IsFoundWithoutTablesInAHugeDataset) {
  std::vector<std::uint64_t> buckets(16, 1'000'000'000);
  Order order(buckets, 1, 3000, 10);
  std::set<std::uint64_t> rows;
  for (std::uint64_t step : {1ull, 5'333'333ull, 5'333'334ull, 20'000'000ull})
    for (std::uint64_t row : order.step_rows(step)) rows.insert(row);
  EXPECT_GT(rows.size(), 11'990u);
  EXPECT_LT(*rows.rbegin(), 16'000'000'000u);
}

TEST(Order, RefusesAStepLargerThanTheDataset) {
  try {
    Order order({3}, 1, 4, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("3 training rows, a step takes 4"), std::string::npos);
  }
}

}  // namespace
}  // namespace ganymede::data
