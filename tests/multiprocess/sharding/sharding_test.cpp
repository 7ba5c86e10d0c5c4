#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/os/files.h"
#include "tests/support/training_run.h"

/// However a model is shared, it is the same model: shard groups and replicas of any size follow the run of one rank.
namespace ganymede::test {
namespace {

struct World {
  int ranks, expert_group = 1, replicas = 1, rows = 12, steps = 50;
  bool sharded_state = false;
};

std::vector<std::string> settings(const World& world) {
  return {fmt::format("parallel.ranks={}", world.ranks),
          fmt::format("parallel.expert_group={}", world.expert_group),
          fmt::format("parallel.replicas={}", world.replicas),
          fmt::format("replicas.state={}", world.sharded_state ? "sharded" : "replicated"),
          fmt::format("data.rows_per_step={}", world.rows),
          fmt::format("run.steps={}", world.steps),
          "checkpoint.every_steps=0",
          "compute.threads=1",
          "validation.every_steps=0"};
}

std::unique_ptr<TrainingRun> trained(const World& world) {
  auto run = std::make_unique<TrainingRun>(settings(world));
  if (int code = run->train({}, 180); code != 0) fail("The run ended with {}:\n{}", code, run->output());
  return run;
}

void expect_close_losses(const TrainingRun& a, const TrainingRun& b) {
  auto first = a.losses(), second = b.losses();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_LE(std::abs(first[i] - second[i]), 1e-6 * std::abs(first[i])) << "step " << i + 1;
}

/// Values of the newest checkpoint by parameter.
std::map<std::string, std::vector<float>> parameters(const TrainingRun& run) {
  std::string file = run.folder() + "/weights.safetensors";
  if (auto answer = run.ganymede({"checkpoint", "dump", run.folder(), "--to", file, "--force"}); answer.exit_code != 0)
    fail("{}", answer.output);
  std::string bytes = os::read_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::map<std::string, std::vector<float>> all;
  nlohmann::json header = nlohmann::json::parse(bytes.substr(sizeof length, length));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    auto begin = tensor["data_offsets"][0].get<std::size_t>(), end = tensor["data_offsets"][1].get<std::size_t>();
    auto& values = all[name] = std::vector<float>((end - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + sizeof length + length + begin, end - begin);
  }
  return all;
}

double rms(const std::vector<float>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

void expect_close_parameters(const TrainingRun& a, const TrainingRun& b) {
  auto first = parameters(a), second = parameters(b);
  ASSERT_EQ(first.size(), second.size());
  for (auto& [name, values] : first) {
    const auto& others = second.at(name);
    ASSERT_EQ(values.size(), others.size());
    double farthest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      farthest = std::max(farthest, std::abs(double{values[i]} - double{others[i]}));
    }
    EXPECT_LE(farthest, 1e-4 * rms(values)) << name;
  }
}

class Sharding : public testing::TestWithParam<World> {
 protected:
  /// The run of one rank with so many rows a step, trained once for all tests.
  static const TrainingRun& one_rank(int rows) {
    auto& run = one_rank_[rows];
    if (!run) run = trained({.ranks = 1, .rows = rows});
    return *run;
  }
  static void TearDownTestSuite() { one_rank_.clear(); }

 private:
  static inline std::map<int, std::unique_ptr<TrainingRun>> one_rank_;
};

TEST_P(Sharding, FollowsTheCurveOfOneRankToTheSameParameters) {
  auto run = trained(GetParam());
  expect_close_losses(one_rank(GetParam().rows), *run);
  expect_close_parameters(one_rank(GetParam().rows), *run);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Sharding,
                         testing::Values(World{3, 1, 1}, World{6, 2, 1}, World{6, 1, 2}, World{4, 1, 4}, World{4, 2, 2},
                                         World{5, 1, 1, 10}, World{3, 3, 1}, World{6, 3, 1}),
                         [](const auto& given) {
                           const World& world = given.param;
                           return fmt::format("Ranks{}ExpertGroup{}Replicas{}", world.ranks, world.expert_group,
                                              world.replicas);
                         });

TEST(ShardingBits, AsManyRanksAsRowsHaveTheBitsOfOneRankHoweverTheyAreGrouped) {
  World world{.ranks = 1, .rows = 5, .steps = 8};
  auto one = trained(world);
  world.ranks = 5;
  auto sharded = trained(world);
  world.replicas = 5;
  auto copies = trained(world);
  world.sharded_state = true;
  auto slices = trained(world);
  EXPECT_EQ(one->losses(), sharded->losses());
  EXPECT_EQ(one->losses(), copies->losses());
  EXPECT_EQ(one->losses(), slices->losses());
  EXPECT_EQ(one->state_hash(), sharded->state_hash());
  EXPECT_EQ(one->state_hash(), copies->state_hash());
  EXPECT_EQ(one->state_hash(), slices->state_hash());
}

void expect_as_one_rank_without_a_break(TrainingRun& run, int steps) {
  TrainingRun straight(settings({.ranks = 1, .steps = steps}));
  ASSERT_EQ(straight.train({"--set", "optimizer.decay_steps=" + std::to_string(steps)}), 0);
  EXPECT_EQ(run.losses().size(), static_cast<std::size_t>(steps));
  expect_close_losses(straight, run);
  expect_close_parameters(straight, run);
}

TEST(ShardingContinuation, CheckpointOfOneWorldGoesOnInAnotherWithOtherReplicas) {
  World world{.ranks = 4, .expert_group = 2, .replicas = 2, .steps = 10};
  auto schedule = settings(world);
  schedule.push_back("optimizer.decay_steps=20");
  TrainingRun run(schedule);
  ASSERT_EQ(run.train(), 0) << run.output();
  ASSERT_EQ(run.train({"--set", "parallel.ranks=3", "--set", "parallel.expert_group=1", "--set", "parallel.replicas=3",
                       "--set", "replicas.state=sharded", "--steps", "15"}),
            0)
      << run.output();
  ASSERT_EQ(run.train({"--set", "parallel.ranks=2", "--set", "parallel.replicas=1", "--steps", "20"}), 0)
      << run.output();
  expect_as_one_rank_without_a_break(run, 20);
}

/// Eight experts at three places are three, three and two.
TEST(ShardingOfUnevenPlaces, BeginsWithTheStateOfOneRank) {
  auto begun = [](const World& world) {
    auto frozen = settings(world);
    frozen.insert(frozen.end(), {"optimizer.lr=0", "model.bias_update_rate=0"});
    TrainingRun run(frozen);
    if (int code = run.train(); code != 0) fail("The run ended with {}:\n{}", code, run.output());
    return run.state_hash();
  };
  auto one = begun({.ranks = 1, .steps = 1});
  EXPECT_EQ(begun({.ranks = 3, .expert_group = 3, .steps = 1}), one);
  EXPECT_EQ(begun({.ranks = 6, .expert_group = 3, .replicas = 2, .steps = 1}), one);
}

TEST(ShardingOfUnevenPlaces, CheckpointGoesOnInAnotherWorldAndComesBack) {
  auto schedule = settings({.ranks = 3, .expert_group = 3, .steps = 8});
  schedule.push_back("optimizer.decay_steps=16");
  TrainingRun run(schedule);
  ASSERT_EQ(run.train(), 0) << run.output();
  ASSERT_EQ(run.train({"--set", "parallel.ranks=4", "--set", "parallel.expert_group=2", "--steps", "12"}), 0)
      << run.output();
  ASSERT_EQ(run.train({"--set", "parallel.ranks=6", "--set", "parallel.expert_group=3", "--steps", "16"}), 0)
      << run.output();
  expect_as_one_rank_without_a_break(run, 16);
}

}  // namespace
}  // namespace ganymede::test
