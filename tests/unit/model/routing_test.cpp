#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "services/worker/model/expert_order.h"
#include "services/worker/model/router.h"

namespace ganymede::worker::model {
namespace {

std::vector<int> chosen(const std::vector<float>& scores, const std::vector<float>& bias, std::int64_t top_k,
                        std::int64_t groups = 1) {
  const auto experts = static_cast<std::int64_t>(scores.size());
  const auto indices =
      select_experts(at::tensor(scores).view({1, experts}), at::tensor(bias), top_k, groups, nullptr).flatten();
  std::vector<int> list;
  for (std::int64_t k = 0; k < top_k; ++k) list.push_back(indices[k].item<int>());
  return list;
}

TEST(Router, SelectsByScoreAndBiasBestFirst) {
  EXPECT_EQ(chosen({0.1f, 0.9f, 0.5f, 0.6f}, {0, 0, 0, 0}, 2), (std::vector<int>{1, 3}));
  EXPECT_EQ(chosen({0.1f, 0.9f, 0.5f, 0.6f}, {1, 0, 0, -1}, 3), (std::vector<int>{0, 1, 2}));
}

TEST(Router, LowerIndexWinsWhereScoresAreEqual) {
  EXPECT_EQ(chosen({0.5f, 0.7f, 0.5f, 0.7f, 0.5f}, {0, 0, 0, 0, 0}, 4), (std::vector<int>{1, 3, 0, 2}));
  EXPECT_EQ(chosen(std::vector<float>(9, 0.5f), std::vector<float>(9), 3), (std::vector<int>{0, 1, 2}));
}

TEST(Router, NanScoresStillGiveDifferentValidExperts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(chosen({nan, nan, nan}, {0, 0, 0}, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(chosen({nan, 0.2f, nan, 0.1f}, {0, 0, 0, 0}, 3), (std::vector<int>{1, 3, 0}));
}

TEST(Router, GroupsChooseTheirBestEachInOrderOfGroups) {
  const std::vector<float> scores = {0.1f, 0.2f, 0.3f, 0.7f, 0.9f, 0.8f}, none(6);
  EXPECT_EQ(chosen(scores, none, 2, 2), (std::vector<int>{2, 4}));
  EXPECT_EQ(chosen(scores, none, 4, 2), (std::vector<int>{2, 1, 4, 5}));
  EXPECT_EQ(chosen(scores, none, 3, 3), (std::vector<int>{1, 3, 4}));
  EXPECT_EQ(chosen(scores, {0, 0, -1, 0, -1, 0}, 2, 2), (std::vector<int>{1, 5}));
  EXPECT_EQ(chosen(std::vector<float>(8, 0.5f), std::vector<float>(8), 4, 2), (std::vector<int>{0, 1, 4, 5}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(chosen({nan, nan, 0.5f, nan}, std::vector<float>(4), 4, 2), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Router, WeightsAreTheChosenScoresSharesTimesTheScale) {
  const auto scores = at::tensor({0.2f, 0.6f, 0.9f}).view({1, 3});
  const auto weights = routing_weights(scores, at::tensor({1, 0}, at::kInt).view({1, 2}), 2.5);
  EXPECT_NEAR(weights[0][0].item<float>(), 2.5 * 0.75, 1e-6);
  EXPECT_NEAR(weights[0][1].item<float>(), 2.5 * 0.25, 1e-6);
}

TEST(Router, ScoresThatAreAllZeroGiveNoNan) {
  const auto weights = routing_weights(at::zeros({1, 3}), at::tensor({1, 0}, at::kInt).view({1, 2}), 1);
  EXPECT_TRUE(weights.equal(at::zeros({1, 2})));
}

TEST(ExpertOrder, SlotsAreSortedByExpertThenByRow) {
  const auto indices = at::tensor({3, 1, 0, 3, 1, 2, 3, 0}, at::kInt).view({4, 2});
  const auto order = order_by_expert(indices, 0, 4);
  EXPECT_EQ(order.begin, (std::vector<std::int64_t>{0, 2, 4, 5, 8}));
  EXPECT_EQ(order.row, (std::vector<std::int32_t>{1, 3, 0, 2, 2, 0, 1, 3}));
  EXPECT_EQ(order.choice, (std::vector<std::int32_t>{0, 1, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(order.position, (std::vector<std::int64_t>{5, 2, 0, 6, 3, 4, 7, 1}));
}

TEST(ExpertOrder, ExpertsOfOtherPlacesHaveNoSlot) {
  const auto indices = at::tensor({3, 1, 0, 3, 1, 2}, at::kInt).view({3, 2});
  const auto order = order_by_expert(indices, 2, 2);
  EXPECT_EQ(order.begin, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(order.position, (std::vector<std::int64_t>{1, -1, -1, 2, -1, 0}));
  EXPECT_EQ(order_by_expert(at::empty({0, 2}, at::kInt), 2, 2).slots(), 0);
}

}  // namespace
}  // namespace ganymede::worker::model
