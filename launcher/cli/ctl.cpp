#include "launcher/cli/ctl.h"

#include <charconv>
#include <memory>
#include <optional>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/msg/client.h"
#include "common/service/run_directory.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/ctl_drain.h"
#include "launcher/cli/ctl_rescale.h"
#include "launcher/cli/ctl_restart.h"
#include "launcher/cli/ctl_set.h"
#include "launcher/cli/ctl_swap.h"
#include "launcher/cli/ctl_where.h"
#include "launcher/cli/run_access.h"
#include "launcher/cli/segments_view.h"
#include "launcher/cli/status_view.h"

namespace ganymede::cli {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

struct CtlOptions {
  std::string run;
  std::vector<std::string> changes;
  double wait = 600;
  bool json = false, now = false, stacks = false;
};

void show_idle(const CtlOptions& options, const std::string& state, const std::string& detail) {
  fmt::print("{}\n", options.json ? idle_json(state, detail) : idle_text(state, detail));
}

/// Asks for the status and shows it. While there are no services, what is durable stands for what they would say.
void show_status(const CtlOptions& options, std::string (*show)(const fbs::Status&)) {
  Message reply = ask_status();
  const auto& status = *reply.as<fbs::Status>();
  if (status.detail()->size() > 0) return show_idle(options, status.state()->str(), status.detail()->str());
  fmt::print("{}\n", show(status));
}

/// Also of a run that nobody runs: that it is stopped, and where.
void show_run(const CtlOptions& options, std::string (*show)(const fbs::Status&)) {
  enter_run(options.run);
  bool alive = run_is_alive();
  // There is none for a moment when a launcher starts.
  if (alive && launcher_serves()) return show_status(options, show);
  show_idle(options, alive ? "recovering" : "stopped", "");
}

void status(const CtlOptions& options) { show_run(options, options.json ? status_json : status_text); }

void where(const CtlOptions& options) {
  if (options.stacks) return where_with_stacks(options.run, options.json);
  show_run(options, options.json ? where_json : where_text);
}

void segments(const CtlOptions& options) {
  require_alive(options.run);
  std::string text;
  try {
    text = options.json ? segments_json() : segments_text();
  } catch (const Error&) {
    if (!run_is_alive()) fail_ended();
    throw;
  }
  fmt::print("{}\n", text);
}

void stop(const CtlOptions& options) {
  require_alive(options.run);
  bool at_once = options.now || ask_status().as<fbs::Status>()->detail()->size() > 0;  // no step is under way
  ask([&](FlatBufferBuilder& builder) { return Message::body(fbs::CreateStopRequest(builder, options.now)); });
  fmt::print("{}\n", at_once ? "the run is stopped at once" : "the run stops after its current step and a checkpoint");
}

void checkpoint(const CtlOptions& options) {
  require_alive(options.run);
  ask([](FlatBufferBuilder& builder) { return Message::body(fbs::CreateCheckpointRequest(builder)); });
  fmt::print("a checkpoint is written after one of the next steps\n");
}

/// "3" or "all".
std::optional<int> rank_of(const std::string& text) {
  if (text.empty() || text == "all") return std::nullopt;
  int rank = -1;
  auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || stopped != text.data() + text.size() || rank < 0)
    fail_usage("--rank {}: a rank is a number from 0 on, or all.", text);
  return rank;
}

void add_restart(CLI::App& ctl, const std::shared_ptr<CtlOptions>& options) {
  auto wish = std::make_shared<RestartWish>();
  auto rank = std::make_shared<std::string>(), binary = std::make_shared<std::string>();
  CLI::App* command = ctl.add_subcommand("restart", "Replace a service, rank after rank; the run goes on");
  command->add_option("SERVICE", wish->service, "Worker, optimizer, data or checkpoint")
      ->required()
      ->check(CLI::IsMember({"worker", "optimizer", "data", "checkpoint"}));
  command->add_option("--rank", *rank, "Rank of the cell, or all, one after another (default)");
  CLI::Option* named =
      command->add_option("--binary", *binary, "Program that it runs from now on, or default: the installed one");
  command
      ->add_option("--wait", wish->seconds, "Seconds to wait for each until the run trains with it; 0: order it alone")
      ->check(command_line::between(0., 86400.));
  command->callback([options, wish, rank, binary, named] {
    wish->run = options->run;
    wish->rank = rank_of(*rank);
    if (*named) wish->binary = *binary;
    if (wish->binary && wish->binary->empty()) fail_usage("--binary is empty: name a program, or default.");
    restart(*wish);
  });
}

void add_rescale(CLI::App& ctl, const std::shared_ptr<CtlOptions>& options) {
  auto wish = std::make_shared<RescaleWish>();
  CLI::App* command = ctl.add_subcommand("rescale", "Go on with other ranks, or without some nodes");
  constexpr int most = 1 << 20;
  command
      ->add_option("--ranks", wish->world.ranks,
                   "Ranks of the world (default: those of the recipe, or what nodes hold)")
      ->check(command_line::between(1, most));
  command->add_option("--expert-group", wish->world.expert_group, "Ranks of an expert group (default: as now)")
      ->check(command_line::between(1, most));
  command->add_option("--replicas", wish->world.replicas, "Copies of the model (default: as now)")
      ->check(command_line::between(1, most));
  command->add_option("--without", wish->world.without, "Node to leave, by its index in --nodes; may be repeated")
      ->allow_extra_args(false)
      ->check(command_line::between(0, most));
  command->add_flag("--now", wish->now, "Do not finish the step: its node hangs, or has lost its device");
  command->add_option("--wait", wish->seconds, "Seconds to wait until the new world trains; 0: order it alone")
      ->check(command_line::between(0., 86400.));
  command->callback([options, wish] {
    wish->run = options->run;
    rescale(*wish);
  });
}

void add_swap(CLI::App& ctl, const std::shared_ptr<CtlOptions>& options) {
  auto wish = std::make_shared<SwapWish>();
  CLI::App* command = ctl.add_subcommand("swap-optimizer", "Go over to another optimizer while the run trains");
  command->callback([options, wish] {
    wish->run = options->run;
    swap_optimizer(*wish);
  });
  command->add_option("NAME", wish->name, "Plugin, see `ganymede optimizer list`; the same name loads it anew")
      ->required();
  command->add_option("--set", wish->settings, "A key of [optimizer] or of the plugin, for example lr=2e-2")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", wish->dry_run, "Say what would happen and change nothing");
  command->add_flag("--force", wish->force, "Take over at once although the new state is empty");
  command->add_flag("--json", wish->json, "Print JSON");
  command->add_option("--wait", wish->seconds, "Seconds to wait until it is in force; 0: order it alone")
      ->check(command_line::between(0., 86400.));
}

/// CLI11 shows of the commands above one only their names.
class UsageWithRun : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const CLI::App* above = app->get_parent();
    std::string ending = above == nullptr ? "" : fmt::format("{} {}", above->get_name(), app->get_name());
    if (above != nullptr && above->get_name() == "ctl" && name.ends_with(ending))
      name.replace(name.size() - ending.size(), ending.size(), fmt::format("ctl RUN {}", app->get_name()));
    return CLI::Formatter::make_usage(app, name);
  }
};

}  // namespace

std::vector<std::string> with_run_for_help(std::vector<std::string> words) {
  bool help = words.size() == 3 && words[0] == "ctl" && (words[2] == "--help" || words[2] == "-h");
  if (!help) return words;
  CLI::App app;
  add_ctl(app);
  auto named = [&](const CLI::App* command) { return command->get_name() == words[1]; };
  const CLI::App* ctl = app.get_subcommand("ctl");
  if (!ctl->get_subcommands(named).empty()) words.insert(words.begin() + 1, "RUN");
  return words;
}

void add_ctl(CLI::App& app) {
  auto options = std::make_shared<CtlOptions>();
  CLI::App* ctl = app.add_subcommand("ctl", "Look at a running job and control it: ganymede ctl RUN COMMAND");
  ctl->formatter(std::make_shared<UsageWithRun>());
  ctl->add_option("RUN", options->run, "Run directory")->required();
  ctl->require_subcommand(1);
  auto add = [&](const char* name, const char* help, void (*call)(const CtlOptions&)) {
    CLI::App* command = ctl->add_subcommand(name, help);
    command->callback([options, call] { call(*options); });
    return command;
  };
  auto add_json = [&](CLI::App* command) { command->add_flag("--json", options->json, "Print JSON"); };
  add_json(add("status", "State, step, services with process ids", status));
  CLI::App* looking = add("where", "What every service does now and for how long, and who is waited for", where);
  add_json(looking);
  looking->add_flag("--stacks", options->stacks, "And the stacks of all threads");
  add_json(add("segments", "The shared memory of the run and every tensor in it", segments));
  CLI::App* stopping =
      add("stop", "Stop after the current step with a checkpoint; the same train command goes on", stop);
  stopping->add_flag("--now", options->now, "At once, without a checkpoint");
  CLI::App* draining =
      add("drain", "As stop, and wait until the run has ended", [](const CtlOptions& o) { drain(o.run, o.wait); });
  draining->add_option("--wait", options->wait, "Seconds to wait; 0: order it alone")
      ->check(command_line::between(0., 86400.));
  add("checkpoint", "Write a checkpoint soon", checkpoint);
  CLI::App* setting = add("set", "Change the learning rate and the like from one of the next steps on",
                          [](const CtlOptions& o) { set(o.run, o.changes, o.wait); });
  setting
      ->add_option("KEY=VALUE", options->changes,
                   "For example lr=1e-3 or muon.momentum=0.9; several take effect together")
      ->required();
  setting->add_option("--wait", options->wait, "Seconds to wait until it is in force; 0: order it alone")
      ->check(command_line::between(0., 86400.));
  add_swap(*ctl, options);
  add_restart(*ctl, options);
  add_rescale(*ctl, options);
}

}  // namespace ganymede::cli
