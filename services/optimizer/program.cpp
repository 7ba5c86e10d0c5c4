#include "services/optimizer/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/run_command.h"
#include "common/service/service.h"
#include "common/step_protocol/change.h"
#include "services/optimizer/plugin_commands.h"
#include "services/optimizer/plugin_guard.h"
#include "services/optimizer/server.h"
#include "services/optimizer/swap_command.h"

namespace ganymede::optimizer {
namespace {

constexpr double patience = 590;  // seconds; a cold network file system is slow

/// What a person or the launcher may ask for besides the service.
struct Request {
  std::string run, folder, name, recipe, configuration;
  std::vector<std::string> settings;
  bool json = false, running = false, dry = false;
  GuardLimit limit = {};
};

using Answer = std::function<std::string()>;

/// What there is to be done; `request` outlives it.
Answer answer_of(CLI::App& app, int argc, char** argv, Request& request) {
  app.require_subcommand(1);
  CLI::App* prepare = app.add_subcommand("prepare", "Copy and check the configured plugin of a run directory");
  prepare->add_option("--run", request.run, "Run directory with its config.toml")->required();
  CLI::App* swap = app.add_subcommand("swap", "What another optimizer would take over in a running job");
  swap->add_option("--run", request.run, "Run directory")->required();
  swap->add_option("--config", request.configuration, "Its configuration with the other optimizer")->required();
  swap->add_flag("--dry-run", request.dry, "Copy no plugin into the run directory");
  CLI::Option* seconds = swap->add_option("--seconds", request.limit.seconds, "How long all of it may take")
                             ->check(command_line::between(0.001, 86400.0));
  CLI::App* check = app.add_subcommand("check", "Check the plugin that a recipe names");
  check->add_option("RECIPE", request.recipe, "Recipe file")->required();
  check->add_option("--set", request.settings, "Change a key of the recipe")->allow_extra_args(false);
  check->add_flag("--running", request.running, "The keys of --set are to change while a run lives");
  CLI::App* list = app.add_subcommand("list", "List the optimizer plugins");
  CLI::App* describe = app.add_subcommand("describe", "Show state slots and hyper-parameters of one plugin");
  describe->add_option("NAME", request.name, "Name of the plugin")->required();
  for (CLI::App* command : {list, describe}) {
    command->add_option("--plugins", request.folder, "Folder of plugins (default: beside the programs)");
  }
  for (CLI::App* command : {check, list, describe}) command->add_flag("--json", request.json, "Print JSON");
  app.parse(argc, argv);
  if (*seconds) request.limit.longer = ", or allow it more time with --wait";
  if (*check || *list || *describe) request.limit.seconds = patience;
  if (*prepare) return [&] { return prepare_run(request.run); };
  if (*swap) return [&] { return describe_swap(request.run, request.configuration, request.dry); };
  if (*check) return [&] { return check_recipe(request.recipe, request.settings, {request.json, request.running}); };
  if (*list) return [&] { return list_plugins(request.folder, request.json); };
  return [&] { return describe_plugin(request.folder, request.name, request.json); };
}

constexpr const char* prefix = "ganymede-optimizer: ";

int command(int argc, char** argv) {
  CLI::App app("The optimizer server of one rank (--run DIR --rank R), and what there is to know about its plugins.",
               "ganymede-optimizer");
  Request request;
  try {
    Answer answer = answer_of(app, argc, argv, request);
    auto print = [&] {
      fmt::print("{}\n", answer());
      return static_cast<int>(ExitCode::done);
    };
    return guarded(request.limit, [&] { return run_command(prefix, print); });
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    command_line::refuse(app, error);
  }
}

}  // namespace

namespace {

/// Serves until the service has to finish or one of the two threads ends with an error.
void serve_beside(service::Context& context, const Beside& beside) {
  std::uint64_t epoch = context.epoch().value_or(step_protocol::epoch_in_force(*context.control().block));
  std::atomic<bool> ended{false};
  std::exception_ptr fault;
  std::thread other([&] {
    try {
      beside(context, epoch, [&ended] { return ended.load(); });
    } catch (...) {
      fault = std::current_exception();
      ended = true;
    }
  });
  std::exception_ptr own;
  try {
    serve(context, epoch, [&ended] { return ended.load(); });
  } catch (...) {
    own = std::current_exception();
  }
  ended = true;
  other.join();
  if (own) std::rethrow_exception(own);
  if (fault) std::rethrow_exception(fault);
}

}  // namespace

int program(int argc, char** argv, const Beside& beside) {
  std::string first = argc > 1 ? argv[1] : "";
  bool service = first == "--run" || first == "--rank" || first == "--protocol";
  auto body = [&](service::Context& context) { serve_beside(context, beside); };
  return service ? service::run(service::Kind::optimizer, argc, argv, body)
                 : run_command(prefix, [&] { return command(argc, argv); });
}

}  // namespace ganymede::optimizer
