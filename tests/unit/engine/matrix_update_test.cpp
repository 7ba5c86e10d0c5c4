#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <functional>
#include <thread>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/server.h"
#include "services/optimizer/update_engine.h"
#include "tests/support/tree.h"
#include "tests/unit/engine/test_world.h"

/// The update of whole matrices over ranks: workers and optimizer servers of a world, with gradients that are a
/// function of the parameter, against the update of whole matrices.
namespace ganymede::worker {
namespace {

constexpr std::uint64_t optimizer_hash = 42;
const std::vector<double> hyper = {0.9,  0.95, 1e-8,
                                   0.95, 1,    0};  // adamw: beta1, beta2, eps; muon: momentum, nesterov, …

config::Config muon_config(const config::Parallel& parallel) {
  config::Config config = tiny_config();
  config.parallel = parallel;
  config.model.expert_ffn = 20;
  config.data.rows_per_step = parallel.ranks;
  config.optimizer.name = "muon";
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  return config;
}

float gradient(std::uint64_t step, int parameter, std::int64_t element) {
  return static_cast<float>(
      normal(step, static_cast<std::uint64_t>(parameter), static_cast<std::uint64_t>(element), 4));
}

void decide(TestCell& cell, std::uint64_t step) {
  for (const placement::OwnedRange& range : cell.placement().owned) {
    for (std::int64_t i = 0; i < range.count; ++i)
      cell.gradients()[range.shard_offset + i] = gradient(step, range.parameter, range.first + i);
  }
  step_protocol::DecisionRecord record;
  record.step = record.updates = step;
  record.clip_factor = 0.5;
  record.group_count = 2;
  record.groups[0] = {0.02, 0.1};
  record.groups[1] = {0.003, 0.1};
  record.hyper_count = hyper.size();
  std::copy(hyper.begin(), hyper.end(), record.hyper);
  record.optimizer_hash = optimizer_hash;
  record.counts_hash = hash64(std::as_bytes(cell.control().expert_counts));
  record.checksum = record.compute_checksum();
  cell.control().block->record_of(step) = record;
  cell.control().block->decided_step.store(step);
}

/// Parameters after `steps` updates in a world. `again`: every worker does its part twice, as after a new generation.
/// `look` sees the world before it goes.
std::map<std::string, std::vector<float>> updated(const config::Parallel& parallel, int steps, bool again = false,
                                                  const std::function<void(TestWorld&)>& look = {}) {
  const optimizer::Plugin muon = optimizer::load_plugin(GANYMEDE_BINARY_DIR "/plugins/muon.so");
  const optimizer::Plugin adamw = optimizer::load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so");
  TestWorld world(muon_config(parallel));
  for (std::uint64_t step = 1; step <= static_cast<std::uint64_t>(steps); ++step) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world.size(); ++rank) decide(world.cell(rank), step);
    for (int rank = 0; rank < world.size(); ++rank) {
      threads.emplace_back([&, rank] {
        optimizer::EngineOptions options;
        options.optimizer_hash = optimizer_hash;
        optimizer::CellMemory memory = optimizer::attach(world.cell(rank));
        optimizer::UpdateEngine server(world.cell(rank).placement(), {muon.table, adamw.table}, memory, options);
        while (server.advance().action.kind != step_protocol::UpdateActionKind::await_decision)
          std::this_thread::yield();
      });
      threads.emplace_back([&, rank] {
        for (int times = again ? 2 : 1; times > 0; --times) world.engine(rank).finish_update(step);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  if (look) look(world);
  return world.parameters();
}

class MatrixUpdate : public testing::TestWithParam<config::Parallel> {};

/// Bit for bit: what is orthogonalised is the whole matrix, whoever does it and whatever lies beside it.
TEST_P(MatrixUpdate, ShardedIsWhole) {
  static const auto expected = updated({1, 1, 1}, 3);
  EXPECT_EQ(updated(GetParam(), 3), expected);
}

TEST_P(MatrixUpdate, DoneAgainItIsTheSame) {
  EXPECT_EQ(updated(GetParam(), 2, true), updated(GetParam(), 2)) << "a worker that came back served it again";
}

TEST_P(MatrixUpdate, CountersHaveTheBytesOfTheClosedForm) {
  updated(GetParam(), 1, false, [](TestWorld& world) {
    for (int rank = 0; rank < world.size(); ++rank) {
      const config::Config& config = world.cell(rank).config();
      auto lines = plan::step_traffic(config, world.cell(rank).placement(), plan::choices_of(config));
      for (const char* operation : {"update_send", "update_return"})
        EXPECT_EQ(world.moved(rank, operation).all(), plan::total(lines, operation).all()) << operation;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, MatrixUpdate,
                         testing::Values(config::Parallel{2, 1, 1}, config::Parallel{3, 1, 1},
                                         config::Parallel{4, 2, 1}, config::Parallel{4, 1, 2},
                                         config::Parallel{5, 1, 1}, config::Parallel{6, 2, 1}),
                         [](const auto& world) {
                           return "Ranks" + std::to_string(world.param.ranks) + "Group" +
                                  std::to_string(world.param.expert_group) + "Replicas" +
                                  std::to_string(world.param.replicas);
                         });

/// One step of torch.optim.Muon's formula in fp64 on each whole logical matrix. In the flat array an expert's gate and
/// up projections lie as one fused matrix, and a rank's rows of several matrices as one slab: neither is what is
/// orthogonalised.
TEST(MatrixUpdate, IsTheTextbookOnEveryLogicalMatrix) {
  config::Parallel two{2, 1, 1};
  auto after = updated(two, 1);
  TestWorld before(muon_config(two));
  auto start = before.parameters();
  const auto& parameters = before.cell(0).placement().parameters;
  int matrices = 0;
  for (int index = 0; index < static_cast<int>(parameters.size()); ++index) {
    const auto& parameter = parameters[static_cast<std::size_t>(index)];
    if (!parameter.hidden_matrix()) continue;
    ++matrices;
    at::Tensor sent = at::empty(parameter.shape, at::kDouble);
    for (std::int64_t i = 0; i < parameter.elements(); ++i) {
      double g = 0.5 * static_cast<double>(gradient(1, index, i)), m = 0.05 * g;
      sent.data_ptr<double>()[i] = g + 0.95 * (m - g);
    }
    at::Tensor x = sent / (sent.norm() + 1e-7);
    bool tall = parameter.rows() > parameter.row_elements();
    if (tall) x = x.t();
    for (int step = 0; step < 5; ++step) {
      at::Tensor a = at::matmul(x, x.t());
      x = 3.4445 * x + at::matmul(-4.7750 * a + 2.0315 * at::matmul(a, a), x);
    }
    if (tall) x = x.t();
    double scale = std::sqrt(std::max(1.0, static_cast<double>(parameter.rows()) / parameter.row_elements()));
    at::Tensor old = at::from_blob(start[parameter.name].data(), parameter.shape, at::kFloat).to(at::kDouble);
    at::Tensor expected = old * (1 - 0.02 * 0.1) - 0.02 * scale * x;
    at::Tensor ours = at::from_blob(after[parameter.name].data(), parameter.shape, at::kFloat).to(at::kDouble);
    EXPECT_LT((ours - expected).abs().max().item<double>(), 1e-6 * 0.02 * 50) << parameter.name;
  }
  EXPECT_GT(matrices, 20);
}

}  // namespace
}  // namespace ganymede::worker
