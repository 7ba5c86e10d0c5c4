#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "services/worker/engine/expert_exchange.h"
#include "services/worker/engine/gradient_norm.h"
#include "services/worker/engine/schedule.h"
#include "services/worker/engine/transfer_operations.h"
#include "tests/unit/engine/test_cell.h"
#include "tests/unit/engine/thread_communicator.h"

namespace ganymede::worker {
namespace {

TEST(SumInOrder, AddsPartsOneAfterAnother) {
  std::vector<float> parts(3 * 5000);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::ldexp(1.0f + 1e-6f * i, static_cast<int>(i % 40) - 20);
  std::vector<float> sum(5000);
  sum_in_order(parts, sum);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float first = parts[i] + parts[5000 + i];
    ASSERT_EQ(sum[i], first + parts[10000 + i]) << i;
  }
}

TEST(GradientNorm, IsTheSameHoweverTheModelIsCut) {
  config::Config config = tiny_config();
  auto norm = [&](int ranks, int expert_group) {
    config.parallel.ranks = ranks;
    config.parallel.expert_group = expert_group;
    ExactSum all;
    for (int rank = 0; rank < ranks; ++rank) {
      placement::Placement placement = placement::build(config, rank);
      std::vector<float> gradients(static_cast<std::size_t>(placement.shard_elements), 7.0f);  // gaps do not count
      for (const auto& range : placement.owned) {
        for (std::int64_t i = 0; i < range.count; ++i) {
          gradients[range.shard_offset + i] =
              model_spec::initial_value(placement.parameters[range.parameter], 3, range.first + i) + 0.1f;
        }
      }
      ExactSum own;
      for (std::size_t b = 0; b < placement.buckets.size(); ++b)
        add_squares(placement, static_cast<int>(b), gradients, own);
      all.merge(own);
    }
    return all.value();
  };
  double one = norm(1, 1);
  EXPECT_GT(one, 0);
  for (auto [ranks, group] : {std::pair{2, 1}, {3, 1}, {4, 2}, {4, 4}}) EXPECT_EQ(norm(ranks, group), one) << ranks;
}

TEST(GradientNorm, SquaresOfARowOfAnyLength) {
  for (std::size_t length : {1u, 7u, 8u, 31u, 64u}) {
    std::vector<float> row(length);
    std::iota(row.begin(), row.end(), 1.0f);
    auto n = static_cast<double>(length);
    EXPECT_EQ(sum_of_squares(row), n * (n + 1) * (2 * n + 1) / 6);
  }
}

TEST(LearningRate, WarmsUpThenFollowsTheCosineAndStaysAtItsEnd) {
  config::Config config;
  config.optimizer.lr = 1.0;
  config.optimizer.min_lr_ratio = 0.1;
  config.optimizer.warmup_steps = 10;
  config.run.steps = 110;
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 1), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 60), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 110), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 500), 0.1);
  config.optimizer.schedule = config::Schedule::constant;
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 60), 1.0);
}

TEST(LearningRate, AScheduleLongerThanTheRunIsItsOwn) {
  config::Config config;
  config.optimizer.warmup_steps = 0;
  config.run.steps = 10;
  config.optimizer.decay_steps = 1000;
  EXPECT_GT(learning_rate(config, config.optimizer.lr, 10), 0.99 * config.optimizer.lr);
}

TEST(LearningRate, IsStableThenDecaysToTheEndOfTheRun) {
  config::Config config;
  config.optimizer.lr = 1.0;
  config.optimizer.min_lr_ratio = 0.2;
  config.optimizer.warmup_steps = 10;
  config.optimizer.schedule = config::Schedule::wsd;
  config.run.steps = 100;
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 5), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 90), 1.0);  // a tenth of the run is left
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 95), 0.2 + 0.8 * 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 100), 0.2);
  config.optimizer.decay_steps = 40;
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 60), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 70), 0.2 + 0.8 * 0.75);
  config.optimizer.decay_shape = config::DecayShape::sqrt;
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 70), 0.2 + 0.8 * 0.5);
  config.run.steps = 200;  // made longer: the decay begins again before the new end
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 100), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, config.optimizer.lr, 200), 0.2);
}

/// Runs `body` at both places of an expert group of two, a thread each.
void at_two_places(const std::function<void(GroupExchange&, int place)>& body) {
  auto post = std::make_shared<ThreadPost>();
  std::vector<std::thread> threads;
  for (int place = 0; place < 2; ++place) {
    threads.emplace_back([&, place] {
      TestCell cell(tiny_config(), 0);
      Surroundings surroundings(cell, 5);
      auto communicator = make_thread_communicator({"exchange", {0, 1}, place, 5}, post);
      GroupExchange exchange(*communicator, surroundings);
      body(exchange, place);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GroupExchange, RowsComeInOrderOfTheirSource) {
  std::vector<at::Tensor> received(2);
  at_two_places([&](GroupExchange& exchange, int place) {
    std::vector<std::int64_t> send = place == 0 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{0, 3};
    std::vector<std::int64_t> receive = exchange.counts(send);
    at::Tensor rows = at::arange(3, at::kFloat).reshape({3, 1}) + 10 * place;
    received[place] = at::empty({receive[0] + receive[1], 1});
    exchange.rows(rows, send, received[place], receive, model::Way::there);
  });
  EXPECT_TRUE(received[0].equal(at::tensor({0.0f}).reshape({1, 1})));
  EXPECT_TRUE(received[1].equal(at::tensor({1.0f, 2.0f, 10.0f, 11.0f, 12.0f}).reshape({5, 1})));
}

TEST(GroupExchange, GathersAndSumsInOrderOfPlaces) {
  std::vector<at::Tensor> all(2), sums(2);
  at_two_places([&](GroupExchange& exchange, int place) {
    all[place] = at::zeros({4, 1}, at::kBFloat16);
    at::Tensor own = all[place].narrow(0, 2 * place, 2);  // in its place already
    own.copy_(at::tensor({1.0f, 2.0f}).reshape({2, 1}) + 10 * place);
    exchange.gather(own, all[place]);
    sums[place] = at::empty({2, 1});
    exchange.sum(all[place] * (place + 1), sums[place]);
  });
  for (int place = 0; place < 2; ++place) {
    EXPECT_TRUE(all[place].equal(at::tensor({1.0f, 2.0f, 11.0f, 12.0f}).to(at::kBFloat16).reshape({4, 1})));
    EXPECT_TRUE(sums[place].equal(at::tensor({1.0f, 2.0f}).reshape({2, 1}) * 3 + 30 * place));
  }
}

}  // namespace
}  // namespace ganymede::worker
