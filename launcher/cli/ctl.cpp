#include "launcher/cli/ctl.h"

#include <unistd.h>

#include <filesystem>
#include <optional>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/msg/client.h"
#include "common/service/run_directory.h"
#include "launcher/cli/ask_launcher.h"
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
  std::string run, service;
  std::vector<std::string> changes;
  double wait = 600;
  std::optional<int> rank;
  bool json = false, now = false, stacks = false;
};

Message ask_status() {
  Message reply = ask([](FlatBufferBuilder& builder) { return Message::body(fbs::CreateStatusRequest(builder)); });
  if (!reply.as<fbs::Status>()) fail("The launcher's answer is not a status: are the programs of one build?");
  return reply;
}

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

/// The one that was asked for; where there is only one, that is meant. A run without services refuses any.
int rank_to_restart(const CtlOptions& options) {
  if (options.rank) return *options.rank;
  Message reply = ask_status();
  const auto& cells = *reply.as<fbs::Status>()->cells();
  if (cells.size() > 1)
    fail_usage("Each of the ranks {} to {} has a service {}: name one with --rank R.", cells.Get(0)->rank(),
               cells.Get(cells.size() - 1)->rank(), options.service);
  return cells.size() == 0 ? 0 : cells.Get(0)->rank();
}

void restart(const CtlOptions& options) {
  require_alive(options.run);
  int rank = rank_to_restart(options);
  fbs::ServiceKind kind{};
  for (auto one :
       {fbs::ServiceKind::worker, fbs::ServiceKind::optimizer, fbs::ServiceKind::data, fbs::ServiceKind::checkpoint})
    if (options.service == fbs::EnumNameServiceKind(one)) kind = one;
  ask([&](FlatBufferBuilder& builder) { return Message::body(fbs::CreateRestartRequest(builder, kind, rank)); });
  fmt::print("the {} of rank {} is started again\n", options.service, rank);
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
      ->check(command_line::between(0, 86400));
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
  add("checkpoint", "Write a checkpoint soon", checkpoint);
  CLI::App* setting = add("set", "Change the learning rate and the like from one of the next steps on",
                          [](const CtlOptions& o) { set(o.run, o.changes, o.wait); });
  setting
      ->add_option("KEY=VALUE", options->changes,
                   "For example lr=1e-3 or muon.momentum=0.9; several take effect together")
      ->required();
  setting->add_option("--wait", options->wait, "Seconds to wait until it is in force; 0: order it alone")
      ->check(command_line::between(0, 86400));
  add_swap(*ctl, options);
  CLI::App* restarting = add("restart", "Kill one service; its replacement goes on", restart);
  restarting->add_option("SERVICE", options->service, "Worker, optimizer, data or checkpoint")
      ->required()
      ->check(CLI::IsMember({"worker", "optimizer", "data", "checkpoint"}));
  restarting->add_option("--rank", options->rank, "Rank of the cell; not needed where there is one rank only")
      ->check(command_line::between(0, 65535));
}

}  // namespace ganymede::cli
