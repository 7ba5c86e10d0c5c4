#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/plan/traffic.h"
#include "services/worker/engine/engine.h"
#include "tests/unit/engine/test_cell.h"
#include "tests/unit/engine/thread_communicator.h"

namespace ganymede::worker {

/// The small model on so many ranks.
inline config::Config world(int ranks, int expert_group = 1, int replicas = 1) {
  config::Config config = tiny_config();
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.parallel.replicas = replicas;
  return config;
}

/// A world of ranks as threads of this process.
class TestWorld {
 public:
  /// `facts`: of the configuration's optimizers; what updates is AdamW all the same (TestCell::update).
  explicit TestWorld(const config::Config& config,
                     const std::vector<placement::OptimizerFacts>& facts = builtin_facts());

  /// Trains one step on all ranks and applies it; the result of rank 0.
  StepResult step(std::uint64_t number);
  std::vector<double> losses(int steps);
  double validate(std::uint64_t step);
  /// What a rank has sent so far by an operation.
  plan::Moved moved(int rank, const std::string& operation);
  /// All parameters whole, put together from the shards.
  std::map<std::string, std::vector<float>> parameters();
  std::map<std::string, std::vector<float>> gradients();

  TestCell& cell(int rank) { return *ranks_.at(rank).cell; }
  Engine& engine(int rank) { return *ranks_.at(rank).engine; }
  /// Bytes that have left a rank since it began.
  TrafficLines traffic(int rank) { return ranks_.at(rank).communicators->traffic(); }
  /// That carries what ranks send one another.
  ThreadPost& post() { return *post_; }
  int size() const { return static_cast<int>(ranks_.size()); }

 private:
  struct Rank {
    std::unique_ptr<TestCell> cell;
    std::unique_ptr<Communicators> communicators;
    std::unique_ptr<Engine> engine;
  };
  std::map<std::string, std::vector<float>> whole(bool gradients);
  std::shared_ptr<ThreadPost> post_ = std::make_shared<ThreadPost>();
  std::vector<Rank> ranks_;
};

double loss(const StepResult& result);

}  // namespace ganymede::worker
