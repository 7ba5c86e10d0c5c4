#include "launcher/supervisor/cell_view.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/os/process_look.h"
#include "common/plan/plan.h"

namespace ganymede::launcher {
namespace {

using coordinator::CellState;
using coordinator::ServiceState;

constexpr const char* where_file = "logs/where.txt";

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
  if (os::is_stopped(process.pid())) return "stopped";  // by SIGSTOP or a debugger; it sends no word either
  return process.waits ? "waiting" : "running";
}

/// What a worker's operation is called and how far its gradients are; the other services say it in words.
std::string operation_of(const ServiceProcess& process, const service::Control& control,
                         const placement::Placement& placement) {
  const auto& words = control.services[static_cast<std::size_t>(process.id().kind)];
  if (process.id().kind != service::Kind::worker) return process.detail;
  std::uint64_t code = words.operation.load(), bucket = words.bucket.load();
  if (code >= plan::operation_kinds || words.progress.load() == 0) return process.detail;
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

CellState view_cell(const placement::Placement& placement, const service::Control& control, int rank, Crew& crew) {
  const ServiceProcess& worker = crew.at(service::Kind::worker, rank);
  CellState cell;
  cell.rank = rank;
  cell.present = worker.alive() && worker.signs.registered;
  cell.loaded = control.block->state_ready.load(std::memory_order_acquire) == 1;
  cell.finished = worker.finished;
  cell.running = true;
  cell.formed = control.block->formed_generation.load();
  cell.decided = control.block->decided_step.load(std::memory_order_acquire);
  for (service::Kind kind : all_kinds) {
    const ServiceProcess& process = crew.at(kind, rank);
    cell.running = cell.running && (process.finished || process.phase == ServicePhase::running);
    cell.services.push_back({kind, process.pid(), state_of(process), process.restarts, process.detail,
                             operation_of(process, control, placement),
                             age_of(control.services[static_cast<std::size_t>(kind)])});
    ServiceBinaries::State binary = crew.binaries().of(kind, rank);
    ServiceState& service = cell.services.back();
    service.binary = binary.now.file;
    service.trial = binary.trial;
    service.refusal = binary.refusal;
    service.refused = binary.refused;
  }
  return cell;
}

}  // namespace

std::string where_line(int rank, const std::string& service, const std::string& state, const std::string& operation,
                       double age_seconds) {
  return fmt::format("rank {:<4}  {:<10}  {:<10}  {} for {}", rank, service, state, operation,
                     human_seconds(age_seconds));
}

void note_where(const std::string& reason, const std::vector<CellState>& cells) {
  std::ofstream file(where_file, std::ios::app);
  file << fmt::format("{:%F %T} {}\n", fmt::localtime(std::time(nullptr)), reason);
  for (const CellState& cell : cells)
    for (const ServiceState& service : cell.services)
      file << where_line(cell.rank, service::name(service.kind), service.state, service.operation, service.age_seconds)
           << '\n';
  if (!file.flush()) log::warn("{} cannot be written", where_file);
}

std::size_t ready_gradients(const service::Control& control) {
  std::uint64_t generation = control.block->joined_generation.load(), step = control.block->decided_step.load() + 1;
  return static_cast<std::size_t>(std::count(control.gradients_ready.begin(), control.gradients_ready.end(),
                                             step_protocol::gradients_ready_word(generation, step)));
}

CellViewer::CellViewer(const config::Config& config, Cells& cells, Crew& crew) : cells_(cells), crew_(crew) {
  const auto& ranks = cells.ranks();
  for (int i = 0; i < ranks.count; ++i) placements_.push_back(placement::build(config, ranks.first + i));
}

std::vector<CellState> CellViewer::view() {
  std::vector<CellState> views;
  for (std::size_t i = 0; i < placements_.size(); ++i) {
    int rank = cells_.ranks().first + static_cast<int>(i);
    views.push_back(view_cell(placements_[i], cells_.control(rank), rank, crew_));
  }
  return views;
}

}  // namespace ganymede::launcher
