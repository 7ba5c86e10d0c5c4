#include "services/data/data_service.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/service/planned_times.h"
#include "services/data/operations.h"
#include "services/data/serving.h"

namespace ganymede::data {
namespace {

constexpr double wait_seconds = 60;  // of one wait; a step may take longer, so the next one begins

SlotArea area_of(const shm::Segment& segment, const std::string& prefix, std::size_t rows, std::size_t seq_len) {
  return {segment.span<step_protocol::Word>(prefix + "words"),
          segment.span<std::uint64_t>(prefix + "header"),
          {segment.span<std::int32_t>(prefix + "tokens"), segment.span<std::int32_t>(prefix + "targets"),
           segment.span<std::int32_t>(prefix + "documents")},
          rows,
          seq_len};
}

/// Refuses a run that wants validation from a dataset without held-out rows; fewer than asked for are used as they
/// are, which the log says.
std::uint64_t validation_rows(const Dataset& dataset, const config::Config& config) {
  auto wanted = static_cast<std::uint64_t>(config.validation.rows);
  std::uint64_t used = used_validation_rows(dataset, wanted);
  if (used == 0)
    fail_usage(
        "Dataset {} has no held-out rows, but validation.every_steps is {}: pack it with a larger "
        "data.validation_fraction, or set validation.every_steps to 0.",
        dataset.folder(), config.validation.every_steps);
  if (used < wanted)
    log::warn("validation uses the {} held-out rows that the dataset has instead of the {} of validation.rows", used,
              wanted);
  return used;
}

/// Fills slots whenever a step was decided, until the service is to finish.
void keep_filled(service::Context& context, Server& server) {
  const step_protocol::Word& decided = context.control().block->decided_step;
  auto last_step = static_cast<std::uint64_t>(context.config().run.steps);
  service::RepeatedWork work(context);
  while (!context.finishing()) {
    std::uint64_t step = decided.load(std::memory_order_acquire);
    work.begin(filling, 0, "filling batch slots");
    server.serve(step, last_step);
    work.end();
    context.at(waiting, 0, "waiting for a decided step");
    auto grown = [step](std::uint64_t now) { return now != step; };
    bool woken = false;
    while (!woken && !context.finishing()) {
      Deadline piece = Deadline::after_seconds(wait_seconds);
      woken = context.wait(
          decided, grown, [&] { return piece.passed(); }, Deadline::after_seconds(2 * wait_seconds), "a decided step");
    }
  }
}

}  // namespace

void serve(service::Context& context, const std::string& content) {
  const config::Config& config = context.config();
  context.at(opening, 0, "opening the dataset");
  Dataset dataset(config.data.path);
  if (dataset.meta().hash() != content)
    fail_usage(
        "Dataset {} has another content (hash {}) than when this run was started (hash {}): put the old dataset back, "
        "then the same command goes on.",
        dataset.folder(), dataset.meta().hash(), content);
  check_matches(dataset, config);
  Order order(dataset.meta().bucket_rows, config.run.seed, static_cast<std::uint64_t>(config.data.rows_per_step),
              static_cast<std::uint64_t>(config.data.balance_group));
  const shm::Segment& batches = context.segment("batches");
  auto seq_len = static_cast<std::size_t>(config.data.seq_len);
  if (config.validation.every_steps > 0) {
    std::size_t rows = batches.layout().entry("validation_tokens").shape.at(1);
    publish_validation(dataset, area_of(batches, "validation_", rows, seq_len), validation_rows(dataset, config),
                       context.rank());
  }
  placement::RowRange mine = placement::rows_of(config, context.rank());
  Server server(dataset, order, area_of(batches, "", mine.count, seq_len), mine);
  log::info("dataset {} ({}): {} training rows, {} held out", dataset.folder(), dataset.meta().hash(),
            dataset.meta().train_rows, dataset.meta().validation_rows);
  keep_filled(context, server);
}

}  // namespace ganymede::data
