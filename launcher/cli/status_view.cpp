#include "launcher/cli/status_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/plan/plan.h"
#include "common/service/run_directory.h"
#include "launcher/cli/degraded_view.h"
#include "launcher/cli/status_binaries.h"
#include "launcher/keeper/failure.h"
#include "launcher/supervisor/cell_view.h"
#include "launcher/supervisor/kept_changes.h"
#include "launcher/supervisor/last_metrics.h"

namespace ganymede::cli {
namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// JSON has no NaN.
ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

const char* name_of(fbs::ServiceKind kind) { return fbs::EnumNameServiceKind(kind); }

ordered_json service_json(const fbs::ServiceStatus& service) {
  ordered_json object = {{"pid", service.pid()},
                         {"state", service.state()->str()},
                         {"restarts", service.restarts()},
                         {"detail", service.detail()->str()},
                         {"operation", service.operation()->str()},
                         {"age_seconds", number(service.age_seconds())}};
  if (service.binary() != nullptr) object["binary"] = service.binary()->str();
  if (service.refusal() != nullptr) object["refused_binary"] = service.refusal()->str();
  return object;
}

ordered_json cell_json(const fbs::CellStatus& cell) {
  ordered_json services = ordered_json::object();
  for (const auto* service : *cell.services()) services[name_of(service->service())] = service_json(*service);
  return {{"rank", cell.rank()}, {"node", cell.node()}, {"services", services}};
}

/// Nodes that have not come yet.
std::vector<int> missing_nodes(const fbs::Status& status) {
  std::vector<int> missing;
  for (const auto* launcher : *status.launchers())
    if (launcher->pid() == 0) missing.push_back(launcher->node());
  return missing;
}

/// "\nwaiting for nodes 1, 3"; nothing when all are there.
std::string missing_text(const fbs::Status& status) {
  std::vector<int> missing = missing_nodes(status);
  if (missing.empty()) return "";
  return fmt::format("\nwaiting for node{} {}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
}

/// Whether a worker's operation is one that ends only when other ranks take part.
bool communicates(const fbs::ServiceStatus& worker) {
  std::string operation = worker.operation()->str();
  std::string kind = operation.substr(0, operation.find_first_of(" ,"));
  for (std::size_t i = 0; i < plan::operation_kinds; ++i) {
    auto one = static_cast<plan::OperationKind>(i);
    if (kind == plan::name(one)) return plan::meets_others(one);
  }
  return false;
}

std::vector<const fbs::RestartEvent*> events_of(const fbs::Status& status) {
  const auto* events = status.restart_events();
  if (events == nullptr) return {};
  return {events->begin(), events->end()};
}

ordered_json event_json(const fbs::RestartEvent& event) {
  auto milliseconds = [](double seconds) { return seconds < 0 ? ordered_json() : ordered_json(seconds * 1e3); };
  return {{"process", event.process()->str()},
          {"node", event.node()},
          {"cause", event.cause()->str()},
          {"step", event.step()},
          {"generation", event.generation()},
          {"detect_ms", milliseconds(event.detect())},
          {"restart_ms", milliseconds(event.restart())},
          {"reform_ms", milliseconds(event.reform())},
          {"redo_ms", milliseconds(event.redo())}};
}

/// A table of the newest restarts; nothing when there are none.
std::string events_text(const fbs::Status& status) {
  if (events_of(status).empty()) return "";
  auto duration = [](double seconds) { return seconds < 0 ? std::string("-") : human_seconds(seconds); };
  std::string text = fmt::format("\n{:>8}  {:<22}  {:>7}  {:>7}  {:>7}  {:>7}  {}", "at step", "restarted", "detect",
                                 "restart", "re-form", "redo", "because");
  for (const auto* event : events_of(status)) {
    std::string process = printable(event->process()->str());
    if (event->node() > 0) process += fmt::format(", node {}", event->node());
    text += fmt::format("\n{:>8}  {:<22}  {:>7}  {:>7}  {:>7}  {:>7}  {}", event->step(), process,
                        duration(event->detect()), duration(event->restart()), duration(event->reform()),
                        duration(event->redo()), printable(event->cause()->str()));
  }
  return text;
}

/// The first service that somebody stopped, with its rank; null when there is none.
std::pair<const fbs::ServiceStatus*, int> stopped_service(const fbs::Status& status) {
  for (const auto* cell : *status.cells())
    for (const auto* service : *cell->services())
      if (service->state()->str() == "stopped") return {service, cell->rank()};
  return {nullptr, -1};
}

/// "\neveryone waits for …"; nothing when that cannot be told.
std::string awaited_text(const fbs::Status& status) {
  if (auto [service, rank] = stopped_service(status); service != nullptr) {
    return fmt::format("\neveryone waits for {} of rank {}, which is stopped: kill -CONT {}",
                       name_of(service->service()), rank, service->pid());
  }
  int rank = awaited_rank(status);
  return rank < 0 ? "" : fmt::format("\neveryone waits for rank {}", rank);
}

struct IdleRun {
  std::uint64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t checkpoint = -1;
  std::string failure;  // empty: it did not fail
};

IdleRun read_idle() {
  IdleRun run;
  run.failure = keeper::read_failure();
  if (auto last = launcher::read_last_metrics(service::metrics_file)) run.step = last->step;
  if (std::filesystem::exists(service::config_file)) run.steps = config::load(service::config_file, {}).run.steps;
  auto manifests = service::read_manifests(service::checkpoint_folder);
  if (!manifests.empty()) run.checkpoint = static_cast<std::int64_t>(manifests.back().step);
  return run;
}

/// All of it is done and durable: training it again ends at once.
bool has_all_steps(const IdleRun& run) { return run.steps > 0 && run.checkpoint >= run.steps; }

bool has_failed(const IdleRun& run, const std::string& state) {
  return state == "stopped" && !run.failure.empty() && !has_all_steps(run);
}

std::string current_folder() { return std::filesystem::current_path().string(); }

/// "3/50"; "3" alone in a run that has no configuration yet.
std::string step_text(const IdleRun& run) {
  return run.steps == 0 ? std::to_string(run.step) : fmt::format("{}/{}", run.step, run.steps);
}

std::string checkpoint_text(std::int64_t step) {
  return step < 0 ? "no checkpoint yet" : fmt::format("last checkpoint: step {}", step);
}

/// What a person has changed while the run ran, of the current run directory.
void add_changes(ordered_json& object) {
  launcher::KeptChanges changes = launcher::read_changes();
  if (!launcher::describe(changes).empty())
    object["changes"] = {{"number", changes.number}, {"values", changes.now}, {"recipe", changes.given}};
}

std::string changes_text() {
  std::string text = launcher::describe(launcher::read_changes());
  return text.empty() ? "" : fmt::format("\nchanged while it ran: {}", text);
}

}  // namespace

std::string status_json(const fbs::Status& status) {
  ordered_json object = {{"run", status.run()->str()},
                         {"step", status.step()},
                         {"steps", status.steps()},
                         {"generation", status.generation()},
                         {"state", status.state()->str()},
                         {"loss", number(status.loss())},
                         {"tokens_per_second", number(status.tokens_per_second())},
                         {"last_checkpoint", status.last_checkpoint()}};
  object["cells"] = ordered_json::array();
  for (const auto* cell : *status.cells()) object["cells"].push_back(cell_json(*cell));
  object["launchers"] = ordered_json::array();
  for (const auto* launcher : *status.launchers())
    if (launcher->pid() != 0)
      object["launchers"].push_back(
          {{"node", launcher->node()}, {"pid", launcher->pid()}, {"keeper_pid", launcher->keeper_pid()}});
  object["missing_nodes"] = missing_nodes(status);
  object["restart_events"] = ordered_json::array();
  for (const auto* event : events_of(status)) object["restart_events"].push_back(event_json(*event));
  object["degraded"] = degraded(status);
  if (status.optimizer() != nullptr) object["optimizer"] = status.optimizer()->str();
  if (status.swap() != nullptr) object["swap"] = status.swap()->str();
  add_changes(object);
  return dump(object);
}

std::string status_text(const fbs::Status& status) {
  std::string figures = status.step() == 0 ? "no step is done yet"
                                           : fmt::format("loss {:.4f}, {} tok/s", status.loss(),
                                                         with_commas(std::llround(status.tokens_per_second())));
  std::string text = fmt::format("{}: {} at step {}/{}, generation {}, {}, {}\n", printable(status.run()->str()),
                                 status.state()->str(), status.step(), status.steps(), status.generation(), figures,
                                 checkpoint_text(status.last_checkpoint()));
  text +=
      fmt::format("{:>4}  {:<10}  {:>8}  {:<10}  {:>8}  {}", "rank", "service", "process", "state", "restarts", "does");
  for (const auto* cell : *status.cells())
    for (const auto* service : *cell->services())
      text += fmt::format("\n{:>4}  {:<10}  {:>8}  {:<10}  {:>8}  {}", cell->rank(), name_of(service->service()),
                          service->pid(), service->state()->str(), service->restarts(), service->operation()->str());
  if (status.optimizer() != nullptr) text += "\noptimizer: " + printable(status.optimizer()->str());
  if (status.swap() != nullptr) text += "\na swap is under way: " + printable(status.swap()->str());
  return text + degraded_text(status) + binaries_text(status) + events_text(status) + missing_text(status) +
         changes_text();
}

int awaited_rank(const fbs::Status& status) {
  if (int rank = stopped_service(status).second; rank >= 0) return rank;
  int awaited = -1, waiting = 0;
  for (const auto* cell : *status.cells()) {
    for (const auto* service : *cell->services()) {
      if (service->service() != fbs::ServiceKind::worker) continue;
      if (communicates(*service)) {
        ++waiting;
      } else if (awaited == -1) {
        awaited = cell->rank();
      } else {
        return -1;
      }
    }
  }
  return waiting > 0 ? awaited : -1;
}

std::string where_text(const fbs::Status& status) {
  std::string text = fmt::format("{} at step {}/{}, generation {}", status.state()->str(), status.step(),
                                 status.steps(), status.generation());
  for (const auto* cell : *status.cells())
    for (const auto* service : *cell->services())
      text += "\n" + launcher::where_line(cell->rank(), name_of(service->service()), service->state()->str(),
                                          service->operation()->str(), service->age_seconds());
  return text + missing_text(status) + awaited_text(status);
}

std::string where_json(const fbs::Status& status) {
  ordered_json object = ordered_json::parse(status_json(status));
  int rank = awaited_rank(status);
  object["awaited_rank"] = rank >= 0 ? ordered_json(rank) : ordered_json();
  return dump(object);
}

std::string idle_json(const std::string& state, const std::string& detail) {
  IdleRun run = read_idle();
  ordered_json object = {{"run", current_folder()},
                         {"step", run.step},
                         {"steps", run.steps},
                         {"generation", 0},
                         {"state", state},
                         {"detail", detail},
                         {"last_checkpoint", run.checkpoint},
                         {"cells", ordered_json::array()},
                         {"launchers", ordered_json::array()}};
  if (has_failed(run, state)) object["failure"] = run.failure;
  add_changes(object);
  return dump(object);
}

std::string idle_text(const std::string& state, const std::string& detail) {
  IdleRun run = read_idle();
  bool failed = has_failed(run, state);
  return fmt::format("{}: {} at step {}, {}{}", printable(current_folder()),
                     failed                                     ? "failed"
                     : state == "stopped" && has_all_steps(run) ? "done"
                                                                : state,
                     step_text(run), checkpoint_text(run.checkpoint),
                     detail.empty() ? "" : "; the launcher is " + detail) +
         (failed ? "\n" + printable(run.failure) : "") + changes_text();
}

}  // namespace ganymede::cli
