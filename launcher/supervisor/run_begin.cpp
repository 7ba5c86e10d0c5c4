#include "launcher/supervisor/run_begin.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/step_ranges.h"
#include "common/os/files.h"
#include "common/os/machine.h"
#include "launcher/coordinator/network_path.h"
#include "launcher/keeper/failure.h"
#include "launcher/keeper/gone_back.h"
#include "launcher/supervisor/child_program.h"
#include "launcher/supervisor/closing.h"
#include "launcher/supervisor/compatibility.h"
#include "launcher/supervisor/dataset_packing.h"
#include "launcher/supervisor/epochs.h"
#include "launcher/supervisor/going_back.h"
#include "launcher/supervisor/kept_changes.h"
#include "launcher/supervisor/launching.h"
#include "launcher/supervisor/log_tail.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/run_start.h"
#include "launcher/supervisor/service_command.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

constexpr double prepare_seconds = 60;
constexpr std::size_t holders_told = 4;

std::uint64_t random_id() {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof(id), 0) != sizeof(id)) fail("The kernel gives no random numbers.");
  return id >> 1 | 1;  // never 0, and a positive number for every reader of JSON
}

/// Puts config.toml back as it was unless `keep` is called.
class ConfigFile {
 public:
  explicit ConfigFile(const config::Config& config) {
    if (fs::exists(service::config_file)) before_ = os::read_file(service::config_file);
    os::write_file_atomically(service::config_file, config::effective(config));
  }
  ~ConfigFile() {
    if (kept_) return;
    try {
      if (before_) os::write_file_atomically(service::config_file, *before_);
      if (!before_) fs::remove(service::config_file);
    } catch (const std::exception& error) {
      log::error("{} could not be put back: {}", service::config_file, error.what());
    }
  }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  void replace(const config::Config& config) {
    os::write_file_atomically(service::config_file, config::effective(config));
  }
  void keep() { kept_ = true; }

 private:
  std::optional<std::string> before_;
  bool kept_ = false;
};

/// Copies the plugins into the run directory and fills in what the services need to know of it; with the defaults of
/// hyper-parameters that the recipe does not have.
void prepare_plugin(ReadyRun& ready, Launching& launching) {
  launching.enter("preparing the optimizer plugin");
  os::Command command;
  command.arguments = {launching.programs + "/ganymede-optimizer", "prepare", "--run", fs::current_path().string()};
  auto result = run_child_captured(command, fmt::format("{}/prepare.out", service::log_folder), launching.signals,
                                   Deadline::after_seconds(prepare_seconds));
  if (result.ending.exit_code != 0) {
    auto lines = last_lines(result.output, 1);
    std::string text = lines.empty() ? result.ending.describe() : lines.back();
    throw Error(result.ending.exit_code == 2 ? ExitCode::usage : ExitCode::failed,
                fmt::format("The optimizer plugin cannot be prepared: {}", text));
  }
  try {
    auto prepared = nlohmann::json::parse(result.output);
    ready.job.plugins.clear();
    for (const auto& plugin : prepared.at("plugins")) {
      placement::OptimizerFacts facts{plugin.at("name"),      plugin.at("slots"),          plugin.at("matrices"),
                                      plugin.at("row_slots"), plugin.at("updates_matrix"), plugin.at("reductions")};
      auto hash = std::stoull(plugin.at("hash").get<std::string>(), nullptr, 16);
      ready.job.plugins.push_back({std::move(facts), plugin.at("file"), hash, plugin.at("version")});
    }
    ready.config.optimizer.hyper.merge(prepared.at("hyper").get<std::map<std::string, double>>());
    placement::add_rest(ready.config.optimizer, ready.job.optimizers());
  } catch (const std::exception& error) {
    fail("What ganymede-optimizer prepare printed is not understood ({}): are the programs of one build?",
         error.what());
  }
}

/// Who updates a parameter stays, and a plugin that was built anew is said.
void check_optimizers(const config::Config& before, const ReadyRun& ready, const std::string& run, Terminal& terminal) {
  if (!fs::exists(service::job_file)) return;
  service::Job earlier;
  try {
    earlier = service::read_job();
  } catch (const Error& error) {
    terminal.line(fmt::format("Who updated which parameter so far is not known: {}", error.what()));
    return;
  }
  // After a swap that came after the checkpoint job.json is about another optimizer than the checkpoint.
  auto facts = earlier.optimizers();
  auto has = [&](const std::string& name) {
    return std::any_of(facts.begin(), facts.end(), [&](const auto& one) { return one.name == name; });
  };
  std::vector<std::string> names = config::optimizers_of(before.optimizer);
  if (!std::all_of(names.begin(), names.end(), has)) facts = ready.job.optimizers();
  check_who_updates(before, facts, ready.config, ready.job.optimizers(), run);
  for (const service::JobPlugin& was : earlier.plugins) {
    for (const service::JobPlugin& is : ready.job.plugins) {
      if (is.facts.name != was.facts.name || is.hash == was.hash) continue;
      terminal.line(
          fmt::format("optimizer plugin '{}' is another one than before: {} → {}", is.facts.name, was.file, is.file));
    }
  }
}

/// What the configuration names has to be on this machine.
void check_machine(const config::Config& config) {
  if (!config.topology.interface.empty()) coordinator::check_interface(config.topology.interface);
  check_wrapper(config.launch.wrap_worker);
}

/// Packs it on first use.
DatasetFacts ready_dataset(Launching& launching, const config::Config& config) {
  launching.enter(fmt::format("packing the dataset {}", config.data.path));
  pack_if_missing(config, launching.programs, launching.signals, launching.terminal);
  launching.enter("making the run directory ready");
  return dataset_facts(config, launching.programs, launching.signals);
}

/// Model, memory and where the run begins, for a person; refuses what does not fit.
void show_and_check(ReadyRun& ready, coordinator::RankRange ranks, const std::string& changed, Terminal& terminal) {
  terminal.line(model_spec::describe(ready.config.model));
  os::Machine machine = os::inspect_machine();
  ready.budget = estimate_memory(ready.config, ready.job, ranks, machine);
  place_on_nodes(ready.budget, nodes_of_cells(ready.config, ranks.count, machine), os::memory_of_nodes());
  terminal.line(tight(ready.budget) ? table(ready.budget) : summary(ready.budget));
  for (const std::string& line : table_lines(ready.budget)) log::info("{}", line);
  require_fit(ready.budget, [] { return os::largest_memory_holders(holders_told); });
  if (ready.load_step > 0) terminal.line(fmt::format("going on from the checkpoint of step {}", ready.load_step));
  if (!changed.empty()) terminal.line("changed since then: " + changed);
}

/// What run.skip_steps has come to name too late.
void say_late_skips(const config::Config& before, const ReadyRun& ready, Terminal& terminal) {
  std::string late = config::too_late(before.run.skip_steps, ready.config.run.skip_steps, ready.load_step);
  if (late.empty()) return;
  terminal.line(
      fmt::format("run.skip_steps: {} is too late for steps up to {}, which the run has done; --from STEP goes back to "
                  "an earlier checkpoint",
                  late, ready.load_step));
}

/// From here on a launcher that is started again goes on, and not back once more.
void go_back(const service::Manifests& all, std::uint64_t step, const std::string& run, Terminal& terminal) {
  if (std::string line = set_newer_aside(all, step, run); !line.empty()) terminal.line(line);
  keeper::note_gone_back();
}

/// Over which the workers of this node talk to those of others.
std::string interface_of(const config::Config& config, const Options& options) {
  if (!config.topology.interface.empty()) return config.topology.interface;
  return options.nodes.empty() ? "lo" : coordinator::interface_of_node(options.node, options.nodes);
}

}  // namespace

ReadyRun begin_run(Launching& launching) {
  const Options& options = launching.options;
  ReadyRun ready;
  ready.config = launching.recipe();
  check_machine(ready.config);
  std::string run = shortened(options.run);
  const service::Manifests all = service::find_manifests(service::checkpoint_folder);
  std::uint64_t back_to = step_to_go_back_to(options.from);
  service::Manifests own = back_to > 0 ? up_to(all, back_to, run) : all;
  std::optional<config::Config> before = configuration_before(own, run);
  KeptChanges kept = read_changes();
  bool has_own = before && !own.intact.empty();
  if (std::string line = keep_swap(kept, has_own ? &*before : nullptr, ready.config, options.said); !line.empty())
    launching.terminal.line(line);
  if (has_own) check_compatible(*before, ready.config, run);
  int cores = os::inspect_machine().cores;
  bool as_named = launching.world_settings.empty();
  if (as_named) coordinator::check_nodes(static_cast<int>(options.nodes.size()), ready.config);
  coordinator::RankRange ranks = coordinator::ranks_of(options.node, launching.members, ready.config);
  resolve_threads(ready.config, before ? &*before : nullptr, cores, ranks.count);
  check_threads(ready.config, cores);
  check_ctas(ready.config);
  if (std::string shared = shared_cores(ready.config, cores, ranks.count); !shared.empty())
    launching.terminal.line(shared);
  Start start = find_start(own, options.from, launching.terminal);
  check_start(start, ready.config, run, steps_of_recipe(options));
  ready.load_step = start.step();
  if (back_to > 0) check_steps_behind(back_to, ready.config);
  if (ready.done()) return ready;
  if (has_own) say_late_skips(*before, ready, launching.terminal);
  ConfigFile file(ready.config);
  ready.job.id = random_id();
  ready.job.load_from = start.folder;
  ready.job.members = launching.members;
  DatasetFacts dataset = ready_dataset(launching, ready.config);
  ready.job.dataset = dataset.hash;
  if (std::string limited = limit_validation(ready.config, dataset.validation_rows); !limited.empty()) {
    launching.terminal.line(limited);
    file.replace(ready.config);
  }
  check_dataset(start, ready.config, ready.job.dataset, run, launching.terminal);
  ready.job.interface = interface_of(ready.config, options);
  prepare_plugin(ready, launching);
  if (before && !own.intact.empty()) check_optimizers(*before, ready, run, launching.terminal);
  if (std::string line = keep_changes(kept, ready.config, options.said); !line.empty()) launching.terminal.line(line);
  file.replace(ready.config);
  show_and_check(ready, ranks, before && !own.intact.empty() ? changed_keys(*before, ready.config) : "",
                 launching.terminal);
  kept.job = ready.job.id;
  kept.number = kept.epoch = 0;
  if (fs::exists(changes_file)) write_changes(kept);
  Epochs::clear();
  keeper::clear_failure();
  if (back_to > 0) go_back(all, back_to, run, launching.terminal);
  service::write_job(ready.job);
  file.keep();
  return ready;
}

ReadyRun begin_on_node(Launching& launching, const Welcome& welcome) {
  const Options& options = launching.options;
  ReadyRun ready;
  os::write_file_atomically(service::config_file, welcome.configuration);
  ready.config = config::load(service::config_file, {});
  check_machine(ready.config);
  check_checkpoint_folder(options.node, welcome.checkpoints, ready.config.launch.node_timeout_seconds,
                          launching.signals);
  ready.load_step = welcome.load_step;
  check_threads(ready.config, os::inspect_machine().cores);
  check_ctas(ready.config);
  ready.job.id = welcome.job;
  ready.job.load_from = welcome.load_from;
  ready.job.members = launching.members;
  ready.job.dataset = ready_dataset(launching, ready.config).hash;
  if (ready.job.dataset != welcome.dataset)
    fail_usage(
        "Dataset {} (data.path) of node {} has another content (hash {}) than that of node 0 (hash {}): copy it from "
        "there.",
        ready.config.data.path, options.node, ready.job.dataset, welcome.dataset);
  ready.job.interface = interface_of(ready.config, options);
  prepare_plugin(ready, launching);
  if (ready.job.plugin_hash() != welcome.plugin_hash)
    fail_usage("Node {} has another optimizer plugin '{}' than node 0: install the same programs on all nodes.",
               options.node, ready.config.optimizer.name);
  show_and_check(ready, coordinator::ranks_of(options.node, launching.members, ready.config), "", launching.terminal);
  Epochs::clear();
  keeper::clear_failure();
  service::write_job(ready.job);
  return ready;
}

ReadyRun resume_run(Launching& launching) {
  ReadyRun ready;
  ready.job = service::read_job();
  ready.config = config::load(ready.job.first_epoch().config, {});
  if (!ready.job.members.empty()) launching.members = ready.job.members;
  ready.budget = estimate_memory(ready.config, ready.job,
                                 coordinator::ranks_of(launching.options.node, launching.members, ready.config),
                                 os::inspect_machine());
  return ready;
}

PlacingProgress placing_shown(Signals& signals, Terminal& terminal) {
  return [&signals, &terminal](std::uint64_t done, std::uint64_t all) {
    stop_if_signalled(signals);
    terminal.live(fmt::format("giving the segments their memory: {} of {}", human_bytes(static_cast<double>(done)),
                              human_bytes(static_cast<double>(all))));
  };
}

}  // namespace ganymede::launcher
