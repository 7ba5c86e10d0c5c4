#include "services/optimizer/handover/handover.h"

#include <algorithm>
#include <atomic>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/cell/handover.h"
#include "common/cell/layouts.h"
#include "common/newton_schulz/cblas/cblas_products.h"
#include "common/os/futex.h"
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

bool answer_handover(shm::Segment& matrices, newton_schulz::Products& products, const newton_schulz::Settings& settings,
                     newton_schulz::Workspace& workspace) {
  shm::Handover handover = shm::handover_of(matrices);
  std::uint64_t number = handover.words->request.load(std::memory_order_acquire);
  if (handover.words->answer.load(std::memory_order_acquire) == number) return false;
  auto rows = static_cast<std::int64_t>(handover.words->rows.load(std::memory_order_acquire));
  auto columns = static_cast<std::int64_t>(handover.words->columns.load(std::memory_order_acquire));
  auto count = static_cast<std::int64_t>(handover.words->count.load(std::memory_order_acquire));
  auto room = static_cast<std::int64_t>(handover.in.size());
  if (rows < 1 || columns < 1 || count < 1 || rows > room || columns > room / rows || count > room / rows / columns) {
    fail("the worker hands over {} matrices of {} x {}, but the segment has room for {} elements: start the run again",
         count, rows, columns, room);
  }
  auto places = newton_schulz::side_by_side(handover.in.data(), handover.out.data(), count, rows, columns);
  auto bad = newton_schulz::orthogonalise(products, {places, rows, columns}, settings, workspace);
  handover.words->overflowed.store(bad ? static_cast<std::uint64_t>(*bad) + 1 : 0, std::memory_order_release);
  os::store_and_wake(handover.words->answer, number);
  return true;
}

void serve_handovers(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended) {
  const config::NewtonSchulz& config = context.config_of(epoch).newton_schulz;
  if (shm::handover_elements(context.config_of(epoch), context.placement_of(epoch)) == 0) return;
  newton_schulz::Settings settings;
  settings.schedule = newton_schulz::parse_schedule("newton_schulz.coefficients", config.coefficients);
  settings.form = static_cast<newton_schulz::Form>(config.form);
  int threads = std::max(context.config_of(epoch).optimizer.threads, 1);
  Team team(threads);
  newton_schulz::CblasProducts products(threads, tasks_on(team));
  newton_schulz::Workspace workspace;
  shm::Segment& matrices = context.segment(shm::matrices_name(epoch));
  const step_protocol::Word& request = shm::handover_of(matrices).words->request;
  while (!context.finishing() && !ended()) {
    std::uint64_t seen = request.load(std::memory_order_acquire);
    if (answer_handover(matrices, products, settings, workspace)) continue;
    os::wait_while_equal(request, seen, Deadline::after(std::chrono::milliseconds(100)));
  }
}

}  // namespace ganymede::optimizer
