#include "services/optimizer/handover/handover.h"

#include <algorithm>
#include <atomic>

#include "common/base/deadline.h"
#include "common/cell/layouts.h"
#include "common/newton_schulz/cblas/cblas_products.h"
#include "common/newton_schulz/settings.h"
#include "common/os/futex.h"
#include "services/optimizer/server.h"
#include "services/optimizer/team.h"

namespace ganymede::optimizer {
namespace {

/// The team's threads share the tasks: whoever is free takes the next.
newton_schulz::RunTasks tasks_on(Team& team) {
  return [&team](std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
    std::atomic<std::int64_t> next{0};
    team.run([&](int) {
      for (std::int64_t task = next++; task < tasks; task = next++) body(task);
    });
  };
}

}  // namespace

void serve_handovers(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended) {
  const config::Config& config = context.config_of(epoch);
  if (shm::handover_room(config, context.placement_of(epoch)).elements == 0) return;
  newton_schulz::Settings settings = newton_schulz::settings_of(config.newton_schulz);
  int threads = std::max(config.optimizer.threads, 1);
  Team team(threads);
  newton_schulz::CblasProducts products(threads, tasks_on(team));
  newton_schulz::Workspace workspace;
  auto orthogonalise = [&](const newton_schulz::Batch& batch) {
    return newton_schulz::orthogonalise(products, batch, settings, workspace);
  };
  CellMemory memory = attach(context, epoch);
  MatrixUpdate update(context.placement_of(epoch), load_plugins(service::read_job().epoch(epoch).plugins), memory);
  shm::Handover handover = shm::handover_of(context.segment(shm::matrices_name(epoch)));
  const step_protocol::Word& request = handover.words->request;
  while (!context.finishing() && !ended()) {
    std::uint64_t seen = request.load(std::memory_order_acquire);
    if (answer_handover(handover, orthogonalise, &update, tasks_on(team))) continue;
    os::wait_while_equal(request, seen, Deadline::after(std::chrono::milliseconds(100)));
  }
}

}  // namespace ganymede::optimizer
