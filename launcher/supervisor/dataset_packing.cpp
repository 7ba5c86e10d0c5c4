#include "launcher/supervisor/dataset_packing.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/child_program.h"
#include "launcher/supervisor/log_tail.h"

namespace ganymede::launcher {
namespace {

constexpr double pack_seconds = 7 * 24 * 3600;  // a large corpus takes its time; a person sees progress and can stop it
constexpr double inspect_seconds = 600;         // from a cold network file system

}  // namespace

void require_dataset_or_sources(const config::Config& config) {
  std::error_code ignored;
  if (!config.data.sources.empty() || std::filesystem::exists(config.data.path, ignored)) return;
  fail_usage(
      "Dataset {} (data.path) does not exist, and there are no data.sources to make it from: pack one with "
      "'ganymede data pack', or name sources.",
      config.data.path);
}

void pack_if_missing(const config::Config& config, const std::string& programs, Signals& signals, Terminal& terminal) {
  std::error_code ignored;
  if (std::filesystem::exists(config.data.path, ignored)) return;
  if (config.data.path.empty()) fail_usage("Key 'data.path' is empty: name the folder of a packed dataset.");
  require_dataset_or_sources(config);
  terminal.line(fmt::format("packing the dataset {} from {} (first use)", config.data.path,
                            fmt::join(config.data.sources, ", ")));
  os::Command command;
  command.arguments = {programs + "/ganymede-data", "pack", "--config", service::config_file};
  os::Ending ending = run_child(command, signals, Deadline::after_seconds(pack_seconds));
  if (ending.signal == 0 && ending.exit_code == 0) return;
  std::string text = fmt::format("The dataset {} could not be packed ({}).", config.data.path, ending.describe());
  for (ExitCode code : {ExitCode::failed, ExitCode::usage, ExitCode::can_go_on})
    if (ending.exit_code == static_cast<int>(code)) throw ToldError(code, text);
  throw Error(ExitCode::failed, text);
}

DatasetFacts dataset_facts(const config::Config& config, const std::string& programs, Signals& signals) {
  os::Command command;
  command.arguments = {programs + "/ganymede-data", "inspect", config.data.path, "--json"};
  auto result = run_child_captured(command, fmt::format("{}/inspect.out", service::log_folder), signals,
                                   Deadline::after_seconds(inspect_seconds));
  if (result.ending.signal == 0 && result.ending.exit_code == 0) {
    auto object = nlohmann::json::parse(result.output, nullptr, false);
    try {
      return {object.at("hash").get<std::string>(), object.at("validation_rows").get<std::uint64_t>()};
    } catch (const nlohmann::json::exception&) {
    }
    fail("What ganymede-data inspect printed is not understood: are the programs of one build?");
  }
  auto lines = last_lines(result.output, 1);
  std::string text = lines.empty() ? result.ending.describe() : lines.back();
  throw Error(result.ending.exit_code == 2 ? ExitCode::usage : ExitCode::failed,
              fmt::format("The dataset {} (data.path) cannot be used: {}", config.data.path, text));
}

std::string limit_validation(config::Config& config, std::uint64_t held_out) {
  int asked = config.validation.rows;
  if (config.validation.every_steps == 0 || static_cast<std::uint64_t>(asked) <= held_out) return "";
  if (held_out == 0)
    fail_usage(
        "Dataset {} has no held-out rows, but validation.every_steps is {}: pack it with a larger "
        "data.validation_fraction, or set validation.every_steps to 0.",
        config.data.path, config.validation.every_steps);
  config.validation.rows = static_cast<int>(held_out);
  return fmt::format("validation uses all {} held-out rows of the dataset; validation.rows asks for {}", held_out,
                     asked);
}

}  // namespace ganymede::launcher
