#include "launcher/supervisor/run_begin.h"

#include <sys/random.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "common/os/machine.h"
#include "launcher/supervisor/child_program.h"
#include "launcher/supervisor/compatibility.h"
#include "launcher/supervisor/dataset_packing.h"
#include "launcher/supervisor/log_tail.h"
#include "launcher/supervisor/memory_estimate.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

constexpr double prepare_seconds = 60;

std::uint64_t random_id() {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof(id), 0) != sizeof(id)) fail("The kernel gives no random numbers.");
  return id >> 1 | 1;  // never 0, and a positive number for every reader of JSON
}

/// The checkpoint to begin with: this run's newest, else the newest of --from, else none.
struct Start {
  std::uint64_t step = 0;
  std::string folder;  // empty: this run's own
};

Start find_start(const std::vector<service::Manifest>& own, const std::string& from) {
  if (!own.empty()) return {own.back().step, ""};
  if (from.empty()) return {};
  std::string folder = service::find_checkpoints(from);
  auto manifests = service::read_manifests(folder);
  if (manifests.empty()) fail_usage("--from {}: there is no complete checkpoint.", from);
  return {manifests.back().step, fs::absolute(folder).string()};
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
  void keep() { kept_ = true; }

 private:
  std::optional<std::string> before_;
  bool kept_ = false;
};

/// Copies the plugin into the run directory and fills in what the services need to know of it.
void prepare_plugin(service::Job& job, const std::string& programs, Signals& signals) {
  os::Command command;
  command.arguments = {programs + "/ganymede-optimizer", "prepare", "--run", fs::current_path().string()};
  auto result = run_child_captured(command, fmt::format("{}/prepare.out", service::log_folder), signals,
                                   Deadline::after_seconds(prepare_seconds));
  if (result.ending.exit_code != 0) {
    auto lines = last_lines(result.output, 1);
    std::string text = lines.empty() ? result.ending.describe() : lines.back();
    throw Error(result.ending.exit_code == 2 ? ExitCode::usage : ExitCode::failed,
                fmt::format("The optimizer plugin cannot be prepared: {}", text));
  }
  try {
    auto prepared = nlohmann::json::parse(result.output);
    job.slots = prepared.at("slots").get<std::vector<std::string>>();
    job.plugin = prepared.at("plugin").get<std::string>();
    job.plugin_hash = std::stoull(prepared.at("hash").get<std::string>(), nullptr, 16);
  } catch (const std::exception& error) {
    fail("What ganymede-optimizer prepare printed is not understood ({}): are the programs of one build?",
         error.what());
  }
}

/// Model, memory and where the run begins, for a person; refuses what does not fit.
void show_and_check(ReadyRun& ready, Terminal& terminal) {
  terminal.line(model_spec::describe(ready.config.model));
  ready.budget = estimate_memory(ready.config, ready.job, os::inspect_machine());
  terminal.line(table(ready.budget));
  require_fit(ready.budget);
  if (ready.load_step > 0) terminal.line(fmt::format("going on from the checkpoint of step {}", ready.load_step));
}

/// What this run directory began with; nothing when it is new.
std::optional<config::Config> configuration_before(const std::string& run) {
  if (!fs::exists(service::config_file)) return std::nullopt;
  try {
    return config::load(service::config_file, {});
  } catch (const Error& error) {
    fail_usage("{}: {} It is the configuration that this run began with; remove the file to go on with the recipe's.",
               run, error.what());
  }
}

}  // namespace

ReadyRun begin_run(const Options& options, const std::string& programs, Signals& signals, Terminal& terminal) {
  ReadyRun ready;
  ready.config = config::load(options.recipe, options.settings);
  auto own = service::read_manifests(service::checkpoint_folder);
  std::optional<config::Config> before = configuration_before(options.run);
  if (before && !own.empty()) check_compatible(*before, ready.config, options.run);
  int cores = os::inspect_machine().cores;
  resolve_threads(ready.config, before ? &*before : nullptr, cores);
  check_threads(ready.config, cores);
  Start start = find_start(own, options.from);
  ready.load_step = start.step;
  ConfigFile file(ready.config);
  pack_if_missing(ready.config, programs, signals, terminal);
  ready.job.id = random_id();
  ready.job.load_from = start.folder;
  prepare_plugin(ready.job, programs, signals);
  if (!ready.done()) show_and_check(ready, terminal);
  service::write_job(ready.job);
  file.keep();
  return ready;
}

ReadyRun resume_run() {
  ReadyRun ready;
  ready.config = config::load(service::config_file, {});
  ready.job = service::read_job();
  ready.budget = estimate_memory(ready.config, ready.job, os::inspect_machine());
  return ready;
}

}  // namespace ganymede::launcher
