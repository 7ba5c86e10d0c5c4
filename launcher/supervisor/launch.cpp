#include "launcher/supervisor/launch.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "common/base/log.h"
#include "common/service/checkpoint_name.h"
#include "launcher/coordinator/node_gate.h"
#include "launcher/coordinator/node_key.h"
#include "launcher/keeper/stop_order.h"
#include "launcher/supervisor/answers.h"
#include "launcher/supervisor/closing.h"
#include "launcher/supervisor/go_on.h"
#include "launcher/supervisor/last_metrics.h"
#include "launcher/supervisor/launching.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/node_answers.h"
#include "launcher/supervisor/node_begin.h"
#include "launcher/supervisor/posted_server.h"
#include "launcher/supervisor/rescale_order.h"
#include "launcher/supervisor/run_start.h"
#include "launcher/supervisor/skips.h"

namespace ganymede::launcher {
namespace {

/// The launcher of node 0.
struct Launch : Launching {
  using Launching::Launching;

  double began = now_seconds();
  keeper::StopOrder order = keeper::read_stop_order();  // given to a launcher before this one
  std::unique_ptr<coordinator::NodeGate> gate;          // of a run over several nodes
  Reforming reforming{options};
  /// What led to this world; nothing: it is the launcher's first.
  std::optional<coordinator::RestartEvent> formed_again;
  double formed_again_since = 0;  // seconds

  Cells take_cells();
  void take_up_rescale();
  ReadyRun begin();
  coordinator::NextWorld world() const { return {members, ready.config.parallel}; }
  void leave_world(const Supervisor& supervisor);
  Outcome end_without_services();
  Outcome end_as_ordered();
  void open_gate();
  WelcomeParts welcome_parts(Cells& cells);
  config::Config recipe_now() const;
  Outcome supervise(Cells& cells, StepLog& steps);
  void tell_end(const RunSummary& summary, const config::Config& config);
  void close(const Outcome& outcome, const StepLog& steps, std::uint64_t load_step);
};

/// The segments of the launcher before this one, if they are complete; otherwise new ones in a run made ready. None
/// when the run has its steps, or when it was ordered to stop and there is nothing to finish.
Cells Launch::take_cells() {
  if (order == keeper::StopOrder::now) {
    Cells::drop_all(keeper);
  } else if (auto cells = intact_cells(0)) {
    if (order != keeper::StopOrder::none) cells->request_stop();
    return std::move(*cells);
  }
  if (order != keeper::StopOrder::none) return {};
  if (!formed_again) take_up_rescale();
  ready = begin();
  if (ready.done()) return {};
  return new_cells();
}

/// The launcher before this one had left a world for another one, and died before that had its segments.
void Launch::take_up_rescale() {
  auto left = read_rescale_order();
  if (!left) return;
  reforming.wish(left->wish, {});
  auto next = reforming.leave({members, config::load(options.recipe, options.settings).parallel}, {}, {});
  if (!next) return;
  members = next->members;
  world_settings = coordinator::settings_of(*next);
}

/// A world that cannot form again ends the run with what is durable.
ReadyRun Launch::begin() {
  if (!formed_again) return begin_run(*this);
  try {
    return begin_run(*this);
  } catch (const Error& error) {
    if (error.code() == ExitCode::can_go_on) throw;
    throw Error(ExitCode::can_go_on,
                fmt::format("The world cannot form again ({}): {}", formed_again->cause, error.what()));
  }
}

/// After its services have ended: which nodes take part in the next one. Throws Error(can_go_on) when none can form.
void Launch::leave_world(const Supervisor& supervisor) {
  double now = now_seconds();
  formed_again = supervisor.forming_again();
  formed_again_since = supervisor.left_at();
  std::vector<int> lost = supervisor.nodes().lost(now);
  auto next = reforming.leave(world(), lost, supervisor.nodes().spares(now));
  if (!next)
    throw Error(ExitCode::can_go_on, fmt::format("{} {}", formed_again->cause, reforming.why_not(world(), lost)));
  std::string line = fmt::format("the world forms again {}", describe(*next));
  log::info("{}", line);
  terminal.line(line);
  members = next->members;
  world_settings = coordinator::settings_of(*next);
}

/// The launcher before this one crashed after it had given the segments back, or was told to stop at once: what is
/// durable is what the run ends with.
Outcome Launch::end_as_ordered() {
  log::info("the run was ordered to stop before this launcher began");
  config::Config config = config::load(options.recipe, options.settings);
  RunSummary summary{.steps = static_cast<std::uint64_t>(config.run.steps), .recipe_steps = steps_of_recipe(options)};
  auto manifests = service::read_manifests(service::checkpoint_folder);
  if (!manifests.empty()) {
    summary.checkpoint = summary.step = manifests.back().step;
    summary.loss = manifests.back().loss;
  } else if (!service::read_checkpoint_name(options.from).own()) {
    summary.load_step = find_start({}, options.from, terminal).step();
  }
  summary.seconds = now_seconds() - began;
  tell_end(summary, config);
  return {summary.step >= summary.steps ? ExitCode::done : ExitCode::can_go_on, "", summary.checkpoint};
}

/// Other nodes may ask from now on; they learn that they have to wait.
void Launch::open_gate() {
  config::Config config = config::load(options.recipe, options.settings);
  members = coordinator::first_members(static_cast<int>(options.nodes.size()), config);
  if (options.nodes.empty()) return;
  coordinator::check_nodes(static_cast<int>(options.nodes.size()), config);
  gate = std::make_unique<coordinator::NodeGate>(options.nodes[0], coordinator::coordinator_secret(),
                                                 static_cast<int>(options.nodes.size()));
}

WelcomeParts Launch::welcome_parts(Cells& cells) {
  WelcomeParts parts{.own_configuration = config::effective(config::load(options.recipe, options.settings)),
                     .configuration = config::effective(ready.config),
                     .checkpoints = std::to_string(ready.job.id),
                     .dataset = ready.job.dataset,
                     .load_step = cells.load_step()};
  leave_checkpoint_token(parts.checkpoints);
  return parts;
}

/// As it is now. Whoever edits it while the run goes on does no harm.
config::Config Launch::recipe_now() const {
  try {
    return recipe();
  } catch (const Error& error) {
    log::warn("the recipe cannot be read any more: {}", error.what());
    return ready.config;
  }
}

Outcome Launch::supervise(Cells& cells, StepLog& steps) {
  door.reset();  // from here on the supervisor answers
  boost::asio::io_context io;
  Supervisor supervisor({.io = io,
                         .config = ready.config,
                         .job = ready.job,
                         .cells = cells,
                         .steps = steps,
                         .terminal = terminal,
                         .signals = signals,
                         .life = life,
                         .programs = programs,
                         .run = options.run,
                         .nodes = options.nodes,
                         .segment_bytes = static_cast<double>(segment_bytes(ready.config, ready.job, cells.ranks())),
                         .budget = ready.budget,
                         .recipe = recipe_now(),
                         .said = options.said,
                         .reforming = reforming,
                         .world = world(),
                         .formed_again = formed_again,
                         .formed_again_since = formed_again_since});
  PostedServer server(io, fmt::format("ipc://{}", service::launcher_socket),
                      [&supervisor](const std::string& identity, const msg::Message& request) {
                        return answer(supervisor, identity, request);
                      });
  auto run_to_the_end = [&] {
    Outcome outcome = supervisor.run();
    if (outcome.again) return outcome;
    auto swap = supervisor.swap_under_way();
    std::string lost = left_behind(cells, swap ? std::optional(swap->describe()) : std::nullopt);
    if (!lost.empty()) terminal.line(lost);
    return outcome;
  };
  if (!gate) {
    Outcome outcome = run_to_the_end();
    if (outcome.again) leave_world(supervisor);
    return outcome;
  }
  auto answer_others = [&supervisor, parts = welcome_parts(cells)](const auto& identity, const auto& request) {
    return answer_node(supervisor, parts, identity, request);
  };
  PostedAnswers answers(io, answer_others, true);
  gate->open(answers.handler());
  Outcome outcome = run_to_the_end();
  answers.close();
  if (outcome.again) {
    gate->close();
    leave_world(supervisor);
    return outcome;
  }
  gate->end(static_cast<int>(outcome.code),
            outcome.text.empty() ? "The run has ended." : "The run was ended: " + outcome.text);
  return outcome;
}

/// To the person at the terminal, and, as a file, to one elsewhere who has asked for it.
void Launch::tell_end(const RunSummary& summary, const config::Config& config) {
  terminal.line(closing_lines(summary, config, options, programs));
  const char* folder = std::getenv("PWD");
  note_go_on({folder ? folder : "", go_on_command(summary, config, options, programs)});
}

void Launch::close(const Outcome& outcome, const StepLog& steps, std::uint64_t load_step) {
  terminal.live("");
  if (!outcome.text.empty()) return;
  double seconds = now_seconds() - began;
  door = std::make_unique<PhaseServer>(options.run, "stopping", "showing a sample");
  if (outcome.code == ExitCode::done) show_sample(ready.config, options, programs, signals, terminal);
  tell_end({.step = steps.last_step(),
            .steps = static_cast<std::uint64_t>(ready.config.run.steps),
            .load_step = load_step,
            .loss = steps.last_loss(),
            .validation_loss = steps.validation_loss(),
            .checkpoint = outcome.checkpoint,
            .seconds = seconds,
            .recipe_steps = steps_of_recipe(options)},
           ready.config);
}

/// There is nothing to train: the run has its steps, or was ordered to stop.
Outcome Launch::end_without_services() {
  bool ordered = order != keeper::StopOrder::none;
  if (gate) {
    gate->end(static_cast<int>(ordered ? ExitCode::can_go_on : ExitCode::done), "There is nothing left to do.");
    gate->linger();
  }
  if (ordered) return end_as_ordered();
  terminal.line(fmt::format("the run in {} has its {} steps; go on with more: --steps {}", shortened(options.run),
                            ready.load_step, more_steps(ready.load_step, steps_of_recipe(options))));
  return {};
}

/// One world, from its segments to their end.
Outcome run_world(Launch& launch, Cells& cells) {
  std::string older =
      set_aside_older_metrics(service::metrics_file, {.load_step = cells.load_step(),
                                                      .decided = cells.decided_step(),
                                                      .load_from_other = !launch.ready.job.load_from.empty()});
  if (!older.empty()) launch.terminal.line(older);
  StepLog steps(service::metrics_file, cells.decided_step(), static_cast<std::uint64_t>(launch.ready.config.run.steps),
                launch.terminal);
  Outcome outcome = launch.supervise(cells, steps);
  std::uint64_t load_step = cells.load_step();
  const step_protocol::DecisionRecord* last = cells.record_of(cells.decided_step());
  std::string skips = last ? ended_by_skips(launch.ready.config.optimizer, *last, outcome.code == ExitCode::done) : "";
  Cells::drop_all(launch.keeper);
  if (outcome.again) return outcome;
  if (outcome.text.empty() && !skips.empty()) outcome = {ExitCode::failed, skips, outcome.checkpoint};
  launch.close(outcome, steps, load_step);
  return outcome;
}

Outcome run(Launch& launch) {
  launch.open_gate();
  while (true) {
    Cells cells = launch.take_cells();
    if (cells.count() == 0) return launch.end_without_services();
    Outcome outcome = run_world(launch, cells);
    bool spares_wait = launch.gate && launch.members.size() < launch.options.nodes.size();
    if (!outcome.again && spares_wait) launch.gate->linger();
    if (!outcome.again) return outcome;
    launch.order = keeper::read_stop_order();
    launch.open_door();
  }
}

}  // namespace

Outcome launch(const Options& options, const std::string& programs) {
  Launch launch(options, programs);
  try {
    return run(launch);
  } catch (const Error& error) {
    if (launch.gate) launch.gate->end(static_cast<int>(error.code()), fmt::format("Node 0: {}", error.what()));
    if (launch.gate) launch.gate->linger();
    throw;
  }
}

}  // namespace ganymede::launcher
