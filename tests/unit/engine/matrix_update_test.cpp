#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "common/cell/layouts.h"
#include "services/optimizer/matrix_update.h"
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
/// By name, as in a record.
const std::map<std::string, std::vector<double>> hyper_parameters = {
    {"muon", {0.9, 0.95, 1e-8, /* momentum, nesterov, scale_rule */ 0.95, 1, 0}},
    {"normuon", {0.9, 0.95, 1e-8, /* beta2, eps, momentum, nesterov */ 0.9, 1e-8, 0.95, 1}}};

struct Case {
  config::Parallel parallel;
  std::string optimizer = "muon";
};

config::Config config_of(const Case& run) {
  config::Config config = tiny_config();
  config.parallel = run.parallel;
  config.model.expert_ffn = 20;
  config.data.rows_per_step = run.parallel.ranks;
  config.optimizer.name = run.optimizer;
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
  const std::vector<double>& hyper = hyper_parameters.at(cell.config().optimizer.name);
  record.hyper_count = hyper.size();
  std::copy(hyper.begin(), hyper.end(), record.hyper);
  record.optimizer_hash = optimizer_hash;
  record.counts_hash = hash64(std::as_bytes(cell.control().expert_counts));
  record.checksum = record.compute_checksum();
  cell.control().block->record_of(step) = record;
  cell.control().block->decided_step.store(step);
}

optimizer::Tables tables_of(const config::Config& config) {
  optimizer::Tables tables;
  for (const std::string& name : config::optimizers_of(config.optimizer))
    tables.push_back(optimizer::load_plugin(GANYMEDE_BINARY_DIR "/plugins/" + name + ".so").table);
  return tables;
}

/// The update of the optimizer server of a rank.
void serve_update(TestCell& cell) {
  optimizer::EngineOptions options;
  options.optimizer_hash = optimizer_hash;
  optimizer::CellMemory memory = optimizer::attach(cell);
  optimizer::UpdateEngine server(cell.placement(), tables_of(cell.config()), memory, options);
  while (server.advance().action.kind != step_protocol::UpdateActionKind::await_decision) std::this_thread::yield();
}

/// Its thread beside, until `done`. `dies`: each request is done once by a predecessor that is killed before it
/// answers.
void serve_matrices(TestCell& cell, bool dies, const std::atomic<bool>& done) {
  if (shm::handover_room(cell.config(), cell.placement()).elements == 0) return;
  optimizer::CellMemory memory = optimizer::attach(cell);
  optimizer::MatrixUpdate update(cell.placement(), tables_of(cell.config()), memory);
  shm::Handover handover = shm::handover_of(cell.segment(shm::matrices_name(0)));
  auto one_by_one = [](std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
    for (std::int64_t i = 0; i < tasks; ++i) body(i);
  };
  while (!done) {
    const shm::HandoverWords& words = *handover.words;
    if (dies && words.request != words.answer) {
      optimizer::HandedOver batch{static_cast<std::int64_t>(words.count), static_cast<std::int64_t>(words.rows),
                                  static_cast<std::int64_t>(words.columns)};
      update.run(handover, batch, one_by_one);
      std::fill(handover.out.begin(), handover.out.end(), NAN);
      std::fill(handover.rows_out.begin(), handover.rows_out.end(), NAN);
    }
    if (!optimizer::answer_handover(handover, {}, &update, one_by_one)) std::this_thread::yield();
  }
}

/// What the rank holds of per-row slots, "PARAMETER/rows" [rows].
void add_row_state(TestCell& cell, std::map<std::string, std::vector<float>>& all) {
  const placement::Placement& placement = cell.placement();
  for (const placement::OwnedRange& range : placement.owned) {
    const model_spec::ParameterSpec& parameter = placement.parameters[static_cast<std::size_t>(range.parameter)];
    if (!placement.per_row(range.parameter, 1)) continue;
    std::vector<float>& values = all[parameter.name + "/rows"];
    values.resize(static_cast<std::size_t>(parameter.rows()));
    placement::StateRun run = placement.state_run(range, 1);
    auto held = cell.segment(shm::state_name(0)).span<float>("slot.1").subspan(run.offset, run.count);
    std::copy(held.begin(), held.end(),
              values.begin() + placement.rows_in(range.parameter, range.first, range.count).first);
  }
}

/// Parameters, and state of rows, after `steps` updates in a world. `again`: every worker does its part twice, as after
/// a new generation, and every server that is asked for matrices dies once. `look` sees the world before it goes.
std::map<std::string, std::vector<float>> updated(const Case& run, int steps, bool again = false,
                                                  const std::function<void(TestWorld&)>& look = {}) {
  TestWorld world(config_of(run));
  for (std::uint64_t step = 1; step <= static_cast<std::uint64_t>(steps); ++step) {
    std::vector<std::thread> threads, beside;
    std::atomic<bool> done{false};
    for (int rank = 0; rank < world.size(); ++rank) decide(world.cell(rank), step);
    for (int rank = 0; rank < world.size(); ++rank) {
      threads.emplace_back([&, rank] { serve_update(world.cell(rank)); });
      beside.emplace_back([&, rank] { serve_matrices(world.cell(rank), again, done); });
      threads.emplace_back([&, rank] {
        for (int times = again ? 2 : 1; times > 0; --times) world.engine(rank).finish_update(step);
      });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    for (std::thread& thread : beside) thread.join();
  }
  if (look) look(world);
  auto all = world.parameters();
  for (int rank = 0; rank < world.size(); ++rank) add_row_state(world.cell(rank), all);
  return all;
}

class MatrixUpdate : public testing::TestWithParam<Case> {};

/// Bit for bit: what is orthogonalised is the whole matrix, whoever does it and whatever lies beside it.
TEST_P(MatrixUpdate, ShardedIsWhole) {
  static std::map<std::string, std::map<std::string, std::vector<float>>> expected;
  auto& whole = expected[GetParam().optimizer];
  if (whole.empty()) whole = updated({{1, 1, 1}, GetParam().optimizer}, 3);
  EXPECT_EQ(updated(GetParam(), 3), whole);
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

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* optimizer : {"muon", "normuon"}) {
    for (config::Parallel parallel : {config::Parallel{2, 1, 1}, {3, 1, 1}, {4, 2, 1}, {4, 1, 2}, {5, 1, 1}, {6, 2, 1}})
      all.push_back({parallel, optimizer});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, MatrixUpdate, testing::ValuesIn(cases()), [](const auto& test) {
  const config::Parallel& world = test.param.parallel;
  return test.param.optimizer + "Ranks" + std::to_string(world.ranks) + "Group" + std::to_string(world.expert_group) +
         "Replicas" + std::to_string(world.replicas);
});

/// Five steps of Newton–Schulz in fp64 on one whole matrix.
at::Tensor orthogonalised(const at::Tensor& sent) {
  at::Tensor x = sent / (sent.norm() + 1e-7);
  bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();
  for (int step = 0; step < 5; ++step) {
    at::Tensor a = at::matmul(x, x.t());
    x = 3.4445 * x + at::matmul(-4.7750 * a + 2.0315 * at::matmul(a, a), x);
  }
  return tall ? x.t() : x;
}

at::Tensor gradients_of(std::uint64_t step, int index, const model_spec::ParameterSpec& parameter) {
  at::Tensor values = at::empty(parameter.shape, at::kDouble);
  for (std::int64_t i = 0; i < parameter.elements(); ++i)
    values.data_ptr<double>()[i] = 0.5 * static_cast<double>(gradient(step, index, i));
  return values;
}

at::Tensor values_of(std::map<std::string, std::vector<float>>& all, const model_spec::ParameterSpec& parameter) {
  return at::from_blob(all[parameter.name].data(), parameter.shape, at::kFloat).to(at::kDouble);
}

/// Calls `body` with each logical matrix that is orthogonalised: its index, what it is, its values before any update.
void for_each_matrix(const Case& run,
                     const std::function<void(int, const model_spec::ParameterSpec&, const at::Tensor&)>& body) {
  TestWorld world(config_of(run));
  auto start = world.parameters();
  int index = 0, matrices = 0;
  for (const model_spec::ParameterSpec& parameter : world.cell(0).placement().parameters) {
    if (parameter.hidden_matrix()) {
      body(index, parameter, values_of(start, parameter));
      ++matrices;
    }
    ++index;
  }
  EXPECT_GT(matrices, 20);
}

/// One step of torch.optim.Muon's formula in fp64 on each whole logical matrix. In the flat array an expert's gate and
/// up projections lie as one fused matrix, and a rank's rows of several matrices as one slab: neither is what is
/// orthogonalised.
TEST(MatrixUpdate, IsTheTextbookOnEveryLogicalMatrix) {
  Case two{{2, 1, 1}};
  auto after = updated(two, 1);
  for_each_matrix(two, [&](int index, const model_spec::ParameterSpec& parameter, const at::Tensor& start) {
    at::Tensor g = gradients_of(1, index, parameter), x = orthogonalised(g + 0.95 * (0.05 * g - g));
    double scale = std::sqrt(std::max(1.0, static_cast<double>(parameter.rows()) / parameter.row_elements()));
    at::Tensor expected = start * (1 - 0.02 * 0.1) - 0.02 * scale * x;
    EXPECT_LT((values_of(after, parameter) - expected).abs().max().item<double>(), 1e-6 * 0.02 * 50) << parameter.name;
  });
}

/// Three steps of NorMuon (Li et al. 2025) in fp64 on each whole logical matrix, in a world that cuts it.
TEST(MatrixUpdate, NormuonIsTheTextbookOnEveryLogicalMatrix) {
  Case three{{3, 1, 1}, "normuon"};
  auto after = updated(three, 3);
  for_each_matrix(three, [&](int index, const model_spec::ParameterSpec& parameter, const at::Tensor& start) {
    at::Tensor w = start, m = at::zeros_like(w), v = at::zeros({parameter.rows(), 1}, at::kDouble);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      at::Tensor g = gradients_of(step, index, parameter);
      m = m + 0.05 * (g - m);
      at::Tensor o = orthogonalised(g + 0.95 * (m - g));
      v = 0.9 * v + 0.1 * (o * o).mean(1, true);
      at::Tensor normalised = o / (v.sqrt() + 1e-8);
      double eta = 0.2 * 0.02 * std::sqrt(static_cast<double>(parameter.elements())) / normalised.norm().item<double>();
      w = w - 0.02 * 0.1 * w - eta * normalised;
    }
    EXPECT_LT((values_of(after, parameter) - w).abs().max().item<double>(), 1e-6 * 0.02 * 50) << parameter.name;
    at::Tensor rows = at::from_blob(after[parameter.name + "/rows"].data(), {parameter.rows(), 1}, at::kFloat);
    EXPECT_LT(((rows.to(at::kDouble) - v) / v).abs().max().item<double>(), 1e-4) << parameter.name;
  });
}

}  // namespace
}  // namespace ganymede::worker
