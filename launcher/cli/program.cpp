#include "launcher/cli/program.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/run_command.h"
#include "common/os/standard_descriptors.h"
#include "launcher/cli/config.h"
#include "launcher/cli/ctl.h"
#include "launcher/cli/doctor.h"
#include "launcher/cli/plan.h"
#include "launcher/cli/siblings.h"
#include "launcher/cli/train.h"
#include "launcher/cli/version.h"

namespace ganymede::cli {
namespace {

/// Commands that another program carries out, with its name and the arguments that come first.
const std::map<std::string, std::vector<std::string>> dispatched = {
    {"data", {"ganymede-data"}},
    {"checkpoint", {"ganymede-checkpoint"}},
    {"optimizer", {"ganymede-optimizer"}},
    {"eval", {"ganymede-worker", "eval"}},
    {"generate", {"ganymede-worker", "generate"}},
};

[[noreturn]] void dispatch(const std::vector<std::string>& target, int argc, char** argv) {
  std::vector<std::string> arguments = target;
  arguments[0] = sibling(target[0]);
  arguments.insert(arguments.end(), argv + 2, argv + argc);
  if (target[0] == "ganymede-worker") prepare_environment_for_torch();
  become(arguments);
}

/// As CLI11 takes them, the last one first.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words = with_run_for_help({argv + std::min(argc, 1), argv + argc});
  std::reverse(words.begin(), words.end());
  return words;
}

int run(int argc, char** argv) {
  if (argc > 1) {
    auto target = dispatched.find(argv[1]);
    if (target != dispatched.end()) dispatch(target->second, argc, argv);
  }
  CLI::App app("Ganymede pre-trains mixture-of-experts language models.", "ganymede");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Print version, commit and build");
  add_train(app);
  app.add_subcommand("data", "Pack text into a dataset, inspect one: ganymede data --help");
  app.add_subcommand("checkpoint", "List, verify and dump checkpoints: ganymede checkpoint --help");
  app.add_subcommand("optimizer", "List optimizers, describe one's keys and state: ganymede optimizer --help");
  app.add_subcommand("eval", "Loss of a checkpoint on a dataset: ganymede eval --help");
  app.add_subcommand("generate", "Continue a text with a checkpoint: ganymede generate --help");
  add_plan(app);
  add_config(app);
  add_ctl(app);
  add_doctor(app);
  try {
    app.parse(words_of(argc, argv));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    command_line::refuse(app, error);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace

int program(int argc, char** argv) {
  os::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // as for the keeper
  return run_command("", [&] { return run(argc, argv); });
}

}  // namespace ganymede::cli
