#include "launcher/supervisor/dataset_packing.h"

#include <filesystem>

#include "common/base/error.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/child_program.h"

namespace ganymede::launcher {
namespace {

constexpr double pack_seconds = 7 * 24 * 3600;  // a large corpus takes its time; a person sees progress and can stop it

}  // namespace

void pack_if_missing(const config::Config& config, const std::string& programs, Signals& signals, Terminal& terminal) {
  std::error_code ignored;
  if (std::filesystem::exists(config.data.path, ignored)) return;
  if (config.data.path.empty()) fail_usage("Key 'data.path' is empty: name the folder of a packed dataset.");
  if (config.data.sources.empty())
    fail_usage(
        "Dataset {} (data.path) does not exist, and there are no data.sources to make it from: pack one with "
        "'ganymede data pack', or name sources.",
        config.data.path);
  terminal.line(fmt::format("packing the dataset {} (first use)", config.data.path));
  os::Command command;
  command.arguments = {programs + "/ganymede-data", "pack", "--config", service::config_file};
  os::Ending ending = run_child(command, signals, Deadline::after_seconds(pack_seconds));
  if (ending.signal == 0 && ending.exit_code == 0) return;
  std::string text = fmt::format("The dataset {} could not be packed ({}).", config.data.path, ending.describe());
  for (ExitCode code : {ExitCode::failed, ExitCode::usage, ExitCode::can_go_on})
    if (ending.exit_code == static_cast<int>(code)) throw ToldError(code, text);
  throw Error(ExitCode::failed, text);
}

}  // namespace ganymede::launcher
