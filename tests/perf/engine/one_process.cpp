#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/collectives/single.h"
#include "services/data/serving.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/server.h"
#include "services/optimizer/update_engine.h"
#include "services/worker/engine/engine.h"
#include "services/worker/engine/process_settings.h"
#include "tests/support/tree.h"
#include "tests/unit/engine/test_cell.h"

/// perf_engine CONFIG STEPS: trains STEPS steps of a run's configuration on one rank in this process, with the data
/// server's and the optimizer server's code called in between, and prints the median time of a step.
namespace ganymede {
namespace {

data::SlotArea slots_of(worker::TestCell& cell) {
  const shm::Segment& batches = cell.segment("batches");
  return {batches.span<step_protocol::Word>("words"),
          batches.span<std::uint64_t>("header"),
          {batches.span<std::int32_t>("tokens"), batches.span<std::int32_t>("targets"),
           batches.span<std::int32_t>("documents")},
          static_cast<std::size_t>(cell.config().data.rows_per_step),
          static_cast<std::size_t>(cell.config().data.seq_len)};
}

constexpr const char* plugin_file = GANYMEDE_BINARY_DIR "/plugins/adamw.so";

std::vector<double> train(const config::Config& config, std::uint64_t steps) {
  worker::TestCell cell(config, 0);
  data::Dataset dataset(config.data.path);
  data::Order order(dataset.meta().bucket_rows, config.run.seed, static_cast<std::uint64_t>(config.data.rows_per_step),
                    static_cast<std::uint64_t>(config.data.balance_group));
  data::Server server(dataset, order, slots_of(cell), {0, config.data.rows_per_step});
  optimizer::Plugin plugin = optimizer::load_plugin(plugin_file);
  optimizer::CellMemory memory = optimizer::attach(cell);
  optimizer::EngineOptions options;
  options.bias_update_rate = config.model.bias_update_rate;
  options.optimizer_hash = plugin.hash;
  options.threads = config.optimizer.threads;
  optimizer::UpdateEngine update(cell.placement(), {plugin.table}, memory, options);
  worker::Communicators communicators(config, cell.placement(), 60, collectives::make_single);
  worker::Engine engine(cell, communicators, 1, plugin.hash);
  std::vector<double> milliseconds;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    Clock::time_point begin = Clock::now();
    server.serve(step - 1, steps);
    engine.train(step);
    while (update.advance().action.kind != step_protocol::UpdateActionKind::await_decision) {
    }
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return milliseconds;
}

int run(int argc, char** argv) {
  std::uint64_t steps = 0;
  std::string_view count = argc == 3 ? argv[2] : "";
  std::from_chars(count.data(), count.data() + count.size(), steps);
  if (steps == 0) fail_usage("perf_engine CONFIG STEPS");
  config::Config config = config::load(argv[1], {"parallel.ranks=1", "parallel.expert_group=1"});
  config.optimizer.hyper =
      optimizer::hyper_parameters(*optimizer::load_plugin(plugin_file).table, "adamw", config.optimizer);
  worker::set_up_process(config);
  std::vector<double> times = train(config, steps);
  std::vector<double> later(times.begin() + static_cast<std::ptrdiff_t>(times.size() / 5), times.end());
  std::sort(later.begin(), later.end());
  fmt::print("{{\"steps\": {}, \"step_ms\": {:.3f}}}\n", steps, later[later.size() / 2]);
  return 0;
}

}  // namespace
}  // namespace ganymede

int main(int argc, char** argv) {
  try {
    return ganymede::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "perf_engine: {}\n", e.what());
    return 1;
  }
}
