#include "launcher/supervisor/status_report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "common/plan/plan.h"

namespace ganymede::launcher {
namespace {

using flatbuffers::FlatBufferBuilder;

const char* state_of(const ServiceProcess& process) {
  if (process.finished) return "finished";
  switch (process.phase) {
    case ServicePhase::absent:
    case ServicePhase::ended:
      return "restarting";
    case ServicePhase::starting:
      return "starting";
    case ServicePhase::running:
      break;
  }
  return process.waits ? "waiting" : "running";
}

/// What a worker's operation is called and how far its gradients are; the other services say it in words.
std::string operation_of(const ServiceProcess& process, const service::Control& control,
                         const placement::Placement& placement) {
  const auto& words = control.services[static_cast<std::size_t>(process.id().kind)];
  if (process.id().kind != service::Kind::worker) return process.detail;
  constexpr auto last = static_cast<std::uint64_t>(plan::OperationKind::wait_update);
  std::uint64_t code = words.operation.load(), bucket = words.bucket.load();
  if (code > last || words.progress.load() == 0) return process.detail;
  std::string text = plan::name(static_cast<plan::OperationKind>(code));
  if (bucket < placement.buckets.size()) text += " " + placement.buckets[bucket].name;
  if (std::size_t ready = ready_gradients(control); ready > 0)
    text += fmt::format(", gradients of {} of {} buckets ready", ready, control.gradients_ready.size());
  return text;
}

double age_of(const step_protocol::ServiceWords& words) {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto since = std::chrono::nanoseconds(words.since_ns.load());
  return since.count() == 0 ? 0 : std::chrono::duration<double>(now - since).count();
}

flatbuffers::Offset<fbs::CellStatus> cell_status(FlatBufferBuilder& builder, Supervisor& supervisor, int rank) {
  auto& control = supervisor.parts().cells.control(rank);
  auto placement = placement::build(supervisor.parts().config, rank);
  std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services;
  for (service::Kind kind : all_kinds) {
    ServiceProcess& process = supervisor.crew().at(kind, rank);
    const auto& words = control.services[static_cast<std::size_t>(kind)];
    auto state = builder.CreateString(state_of(process));
    auto detail = builder.CreateString(process.detail);
    auto operation = builder.CreateString(operation_of(process, control, placement));
    services.push_back(fbs::CreateServiceStatus(builder, static_cast<fbs::ServiceKind>(kind), process.pid(), state,
                                                process.restarts, detail, operation, age_of(words)));
  }
  return fbs::CreateCellStatus(builder, rank, 0, builder.CreateVector(services));
}

}  // namespace

std::size_t ready_gradients(const service::Control& control) {
  std::uint64_t generation = control.block->joined_generation.load(), step = control.block->decided_step.load() + 1;
  return static_cast<std::size_t>(std::count(control.gradients_ready.begin(), control.gradients_ready.end(),
                                             step_protocol::gradients_ready_word(generation, step)));
}

msg::Message::BodyOffset status_report(FlatBufferBuilder& builder, Supervisor& supervisor) {
  const SupervisorParts& parts = supervisor.parts();
  std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
  for (int rank = 0; rank < parts.cells.count(); ++rank) cells.push_back(cell_status(builder, supervisor, rank));
  std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers = {
      fbs::CreateLauncherStatus(builder, 0, getpid(), getppid())};
  auto run = builder.CreateString(parts.run);
  auto state = builder.CreateString(supervisor.state());
  auto cell_list = builder.CreateVector(cells);
  auto launcher_list = builder.CreateVector(launchers);
  auto checkpoint = supervisor.last_checkpoint();
  return msg::Message::body(
      fbs::CreateStatus(builder, run, parts.steps.last_step(), static_cast<std::uint64_t>(parts.config.run.steps),
                        supervisor.membership().generation(), state, cell_list, launcher_list, parts.steps.last_loss(),
                        parts.steps.tokens_per_second(), checkpoint ? static_cast<std::int64_t>(*checkpoint) : -1));
}

}  // namespace ganymede::launcher
