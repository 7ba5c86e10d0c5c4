#include "launcher/supervisor/supervisor.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/keeper/stop_order.h"
#include "launcher/supervisor/closing.h"

namespace ganymede::launcher {
namespace {

constexpr double node_is_away = 2;  // seconds of silence; nodes report several times a second

}  // namespace

Supervisor::Supervisor(SupervisorParts parts)
    : parts_(std::move(parts)),
      crew_(
          parts_.io, parts_.config, parts_.cells.ranks(), os::inspect_machine(), parts_.programs, parts_.run,
          parts_.terminal, [this](ServiceProcess& process, const os::Ending& ending) { ended(process, ending); },
          [this](int rank) { return parts_.cells.epoch_in_force(rank); }),
      end_(crew_),
      degraded_(parts_.terminal),
      nodes_(parts_.nodes, parts_.world.members, parts_.config, now_seconds()),
      membership_(parts_.config.parallel.ranks, parts_.cells.highest_generation()),
      checkpoint_parts_(parts_.config.parallel.ranks),
      epochs_(parts_.config, parts_.job),
      changes_(parts_.recipe, parts_.job, parts_.cells, epochs_, parts_.said),
      swap_({parts_.job, parts_.cells, crew_, changes_, epochs_, parts_.terminal, parts_.budget,
             static_cast<std::uint64_t>(parts_.config.run.steps), [this] { return epochs_elsewhere(); }}),
      limit_(std::getenv(TimeLimit::variable), wall_seconds(), parts_.config.launch.end_margin_seconds,
             parts_.segment_bytes),
      timer_(parts_.io),
      farewell_(parts_.io),
      restart_timer_(parts_.io),
      stopping_(parts_.cells.stop_requested()),
      resumed_(parts_.cells.highest_generation() > 0) {
  parts_.cells.end_rescue();  // that a launcher before this one ordered: the world may be whole again
  auto manifests = service::read_manifests(service::checkpoint_folder);
  if (!manifests.empty()) last_committed_ = manifests.back().step;
  nodes_.leave_out(parts_.reforming.left_out());
  resume_rescale();
  crew_.words = [this](const ServiceId& id) -> const step_protocol::ServiceWords& {
    return parts_.cells.control(id.rank).services[static_cast<std::size_t>(id.kind)];
  };
  crew_.stands_still = [this](const std::string& what) { note_where(what); };
}

Outcome Supervisor::run() {
  parts_.signals.watch(parts_.io, [this](int number) { on_signal(number); });
  if (!limit_.warning().empty()) parts_.terminal.line(limit_.warning());
  crew_.start_all();
  tick();
  parts_.io.run();
  parts_.life.end();
  parts_.signals.ignore();
  watch_changes();
  outcome_.checkpoint = last_committed_;
  return outcome_;
}

void Supervisor::announce(std::optional<std::uint64_t> generation) {
  if (!generation) return;
  store_.begin(*generation);
  parts_.cells.announce_generation(*generation);
  log::info("generation {} begins", *generation);
}

/// Not before every cell has its state: a worker that met nobody in a generation for long would give it up.
void Supervisor::consider_first_generation() {
  if (!parts_.cells.all_loaded() || !nodes_.all_loaded()) return;
  membership_.seen(nodes_.highest_generation());  // rule 11
  auto first = membership_.begin();
  if (first) nodes_.run_begins();
  if (first && parts_.formed_again) note_formed();
  announce(first);
}

void Supervisor::registered(const ServiceId& id, int pid) {
  crew_.registered(id, pid);
  if (id.kind == service::Kind::worker) membership_.worker_registered(id.rank);
  note_restarts();
}

void Supervisor::heartbeat(const ServiceId& id, const fbs::Heartbeat& beat) { crew_.heartbeat(id, beat); }

void Supervisor::fatal(const ServiceId& id, int pid, int exit_code, const std::string& text) {
  crew_.at(id.kind, id.rank);  // throws for one that does not exist
  if (swap_.crew().fault(pid, text) || crew_.take_fault_on_trial(id, pid, text)) return;
  bool known = exit_code == static_cast<int>(ExitCode::usage) || exit_code == static_cast<int>(ExitCode::can_go_on);
  std::string line = fmt::format("{}: {}", id.text(), text);
  log::error("{}", line);
  if (phase_ == Phase::finishing) return;                            // all is computed and durable
  if (phase_ == Phase::rescuing && Crew::computes(id.kind)) return;  // it is ended anyway
  if (phase_ == Phase::rescuing) return leave_world(fmt::format("Memory cannot be saved ({}).", line));
  bool to_checkpoint = id.kind == service::Kind::worker && exit_code == static_cast<int>(ExitCode::can_go_on);
  if (to_checkpoint) return form_again(line, {}, 0);
  halt({known ? static_cast<ExitCode>(exit_code) : ExitCode::failed, line}, false);
}

void Supervisor::generation_failed(std::uint64_t generation, int rank, const std::string& cause) {
  if (phase_ != Phase::working || first_left_ > 0 || !membership_.is_current(generation)) return;
  std::string line = fmt::format("generation {} failed on rank {}: {}", generation, rank, cause);
  log::warn("{}", line);
  note_where(line);
  // Ranks do not come together without those of a node that is away: it comes back, or is lost.
  bool away = nodes_.silent(now_seconds(), node_is_away, parts_.config.launch.node_start_seconds).has_value();
  auto next = membership_.failed(parts_.cells.decided_step(), !away);
  if (!next) {
    std::string text = fmt::format(
        "The ranks do not come together: {} generations in a row failed without a step (the last on rank {}: {}). Look "
        "whether the nodes reach one another over the network (topology.interface, firewalls); the same command goes "
        "on.",
        coordinator::Membership::most_failures, rank, cause);
    return halt({ExitCode::failed, text}, false);
  }
  parts_.terminal.line(fmt::format("{}; another one begins", line));
  announce(next);
}

void Supervisor::step(const fbs::StepReport& report) {
  note_restarts();
  if (report.step() > parts_.steps.last_step()) limit_.step_took(report.step_ms() / 1e3);
  write_steps([&] {
    make_good(report.step());
    parts_.steps.take(report, around());
  });
}

/// Reports wait in the worker, so a killed one may take the last two with it; their records are still in the cell. Only
/// when the launcher was away for long or died as well, there may be more.
void Supervisor::make_good(std::uint64_t before) {
  std::uint64_t written = parts_.steps.last_step(), loaded = parts_.cells.load_step();
  bool begins_here = written == 0 || !parts_.job.load_from.empty();  // what led to load_step is not in this file
  for (std::uint64_t lost = (begins_here ? std::max(written, loaded) : written) + 1; lost < before; ++lost) {
    if (const auto* record = parts_.cells.record_of(lost)) {
      parts_.steps.take_record(*record, around());
    } else {
      parts_.steps.take_gap(lost, around());
    }
  }
}

StepSurroundings Supervisor::around() {
  return {.generation = membership_.generation(),
          .restarts = crew_.restarts() + nodes_.restarts(),
          .host_used = crew_.private_bytes() + parts_.segment_bytes + swap_.crew().grown_bytes(),
          .host_predicted = static_cast<double>(parts_.budget.needed()) + swap_.crew().grown_bytes(),
          .host_limit = static_cast<double>(parts_.budget.available)};
}

/// A run whose metrics cannot be written (a full disk) goes on while its lines have room in memory.
void Supervisor::write_steps(const std::function<void()>& write) {
  try {
    write();
    note_metrics();
  } catch (const Error& error) {
    halt({ExitCode::failed, error.what()}, false);
  }
}

void Supervisor::note_metrics() {
  std::string trouble = parts_.steps.trouble();
  if (trouble.empty()) return degraded_.works("metrics");
  degraded_.fails("metrics", trouble + " Training goes on, and the lines of its steps wait in memory until then.");
}

coordinator::CheckpointParts::Receipt Supervisor::part(const fbs::PartDurable& part) {
  return checkpoint_parts_.report(part.step(), part.rank(), part.bytes(), part.hash()->str());
}

void Supervisor::committed(std::uint64_t step, std::uint64_t bytes, double seconds) {
  if (last_committed_ && *last_committed_ >= step) return;
  last_committed_ = step;
  checkpoint_parts_.committed(step);
  limit_.save_took(seconds);
  std::string line = fmt::format("checkpoint of step {}: {} in {}", step, human_bytes(static_cast<double>(bytes)),
                                 human_seconds(seconds));
  log::info("{}", line);
  parts_.steps.line_after(step, line);
  degraded_.works("checkpoints");
  consider_finish();
}

void Supervisor::checkpoint_failed(std::uint64_t step, int rank, const std::string& text) {
  bool last = parts_.cells.ends_after_decided() && parts_.cells.decided_step() == step;
  std::string line = checkpoint_failure(step, rank, text, parts_.run, last);
  log::error("{}", line);
  if (phase_ == Phase::rescuing) return leave_world(fmt::format("Memory cannot be saved: {}", line));
  if (last) return halt({ExitCode::failed, line}, false);
  parts_.terminal.line(line);
  degraded_.fails_as_told("checkpoints", line);
}

void Supervisor::stop_now() {
  keeper::note_stop_order(keeper::StopOrder::now);
  halt({ExitCode::can_go_on, ""}, true);
}

void Supervisor::stop_now_after_answer() {
  farewell_.expires_after(std::chrono::milliseconds(100));
  farewell_.async_wait([this](const boost::system::error_code& error) {
    if (!error) stop_now();
  });
}

void Supervisor::stop() {
  if (is_ending() || (stopping_ && !rescaling_)) return;
  keeper::note_stop_order(keeper::StopOrder::after_step);
  rescaling_ = false;
  if (phase_ == Phase::rescuing) return;  // the launcher sees the order before the world forms again
  stopping_ = true;
  if (membership_.generation() == 0) {
    log::info("a stop was ordered before the first step");
    return halt({ExitCode::can_go_on, ""}, false);
  }
  parts_.cells.request_stop();
  log::info("a stop after the current step was ordered");
  parts_.terminal.line(
      "stopping: the current step is finished and a checkpoint is written (Ctrl-C again: stop at once)");
}

void Supervisor::checkpoint() {
  if (phase_ != Phase::working) fail("The run is ending; its last checkpoint is written anyway.");
  log::info("checkpoint {} was ordered", parts_.cells.request_snapshot());
}

const char* Supervisor::state() {
  if (phase_ == Phase::rescuing || rescaling_) return "recovering";
  if (stopping_ || phase_ != Phase::working) return "stopping";
  if (!crew_.all_running() || !nodes_.all_running()) return "recovering";
  std::uint64_t generation = membership_.generation();
  bool all = generation > 0 && parts_.cells.all_loaded() && parts_.cells.all_formed(generation) &&
             nodes_.all_formed(generation);
  return all ? "training" : "recovering";
}

void Supervisor::ended(ServiceProcess& process, const os::Ending& ending) {
  if (is_ending()) {
    process.finished = true;
    return consider_over();
  }
  if (swap_.crew().ended(process, ending)) return;
  if (phase_ == Phase::rescuing && Crew::computes(process.id().kind)) return;
  bool worker = process.id().kind == service::Kind::worker;
  bool left = ending.signal == 0 && ending.exit_code == 0 && parts_.cells.ends_after_decided();
  if (worker && (left || first_left_ > 0)) return worker_left(process);
  if (worker) announce(membership_.worker_died(process.id().rank));
  if (auto outcome = crew_.replace(process, ending)) return halt(*outcome, false);
  note_restarts();
}

}  // namespace ganymede::launcher
