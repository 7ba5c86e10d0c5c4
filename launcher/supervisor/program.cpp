#include "launcher/supervisor/program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/run_command.h"
#include "common/base/standard_error.h"
#include "common/os/process.h"
#include "common/os/signals.h"
#include "common/service/run_directory.h"
#include "launcher/keeper/failure.h"
#include "launcher/supervisor/child_program.h"
#include "launcher/supervisor/launch.h"
#include "launcher/supervisor/node_launch.h"
#include "launcher/supervisor/options.h"

namespace ganymede::launcher {
namespace {

/// Of what is refused before it runs, the run directory says nothing.
int report(ExitCode code, const std::string& text) {
  if (code == ExitCode::failed) keeper::note_failure(text);
  log::error("{}", text);
  log::flush();
  print_error("{}\n", text);
  return static_cast<int>(code);
}

}  // namespace

int program(int argc, char** argv) {
  os::block_signals();
  os::install_crash_handler();
  try {
    Options options = parse_options(argc, argv);
    if (chdir(options.run.c_str()) != 0)
      fail("Run directory {} cannot be entered: {}.", options.run, std::strerror(errno));
    log::start("launcher", fmt::format("{}/launcher.log", service::log_folder), false);
    Outcome outcome =
        options.node == 0 ? launch(options, os::program_folder()) : launch_node(options, os::program_folder());
    log::info("the run ended with exit code {}", static_cast<int>(outcome.code));
    if (outcome.code == ExitCode::usage) keeper::note_failure(outcome.text);
    if (!outcome.text.empty()) return report(outcome.code, outcome.text);
    return static_cast<int>(outcome.code);
  } catch (const ToldError& error) {
    log::error("{}", error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::exception& error) {
    return report(ExitCode::failed, sentence_of(error));
  }
}

}  // namespace ganymede::launcher
