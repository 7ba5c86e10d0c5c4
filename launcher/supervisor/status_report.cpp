#include "launcher/supervisor/status_report.h"

#include <unistd.h>

#include "launcher/coordinator/node_messages.h"
#include "launcher/supervisor/cell_view.h"

namespace ganymede::launcher {
namespace {

using flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fbs::CellStatus> cell_status(FlatBufferBuilder& builder, int node,
                                                 const coordinator::CellState& cell) {
  std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services;
  for (const auto& service : cell.services) services.push_back(coordinator::pack(builder, service));
  return fbs::CreateCellStatus(builder, cell.rank, node, builder.CreateVector(services));
}

}  // namespace

msg::Message::BodyOffset status_report(FlatBufferBuilder& builder, Supervisor& supervisor) {
  const SupervisorParts& parts = supervisor.parts();
  std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
  std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers = {
      fbs::CreateLauncherStatus(builder, 0, getpid(), getppid())};
  for (const auto& cell : CellViewer(parts.config, parts.cells, supervisor.crew()).view())
    cells.push_back(cell_status(builder, 0, cell));
  for (const auto& state : supervisor.nodes().states()) {
    launchers.push_back(fbs::CreateLauncherStatus(builder, state.node, state.pid, state.keeper_pid));
    for (const auto& cell : state.cells) cells.push_back(cell_status(builder, state.node, cell));
  }
  for (int node : supervisor.nodes().missing()) launchers.push_back(fbs::CreateLauncherStatus(builder, node, 0, 0));
  auto run = builder.CreateString(parts.run);
  auto state = builder.CreateString(supervisor.state());
  auto cell_list = builder.CreateVector(cells);
  auto launcher_list = builder.CreateVector(launchers);
  auto detail = builder.CreateString("");
  auto events = coordinator::pack(builder, supervisor.restart_events());
  auto checkpoint = supervisor.last_checkpoint();
  auto optimizer = builder.CreateString(supervisor.optimizer());
  auto under_way = supervisor.swap_under_way();
  auto degraded = builder.CreateVectorOfStrings(supervisor.degraded());
  auto swap = under_way ? builder.CreateString(under_way->describe()) : 0;
  return msg::Message::body(
      fbs::CreateStatus(builder, run, parts.steps.last_step(), static_cast<std::uint64_t>(parts.config.run.steps),
                        supervisor.membership().generation(), state, cell_list, launcher_list, parts.steps.last_loss(),
                        parts.steps.tokens_per_second(), checkpoint ? static_cast<std::int64_t>(*checkpoint) : -1,
                        detail, optimizer, swap, events, degraded));
}

}  // namespace ganymede::launcher
