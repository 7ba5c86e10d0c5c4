#include "services/checkpoint/commands.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/printable.h"
#include "common/base/run_command.h"
#include "common/base/standard_error.h"
#include "common/base/text.h"
#include "services/checkpoint/dump.h"
#include "services/checkpoint/list.h"
#include "services/checkpoint/progress_line.h"
#include "services/checkpoint/verify.h"

namespace ganymede::checkpoint {
namespace {

struct Arguments {
  std::string folder, to;
  std::uint64_t step = 0;
  bool json = false, hash = false, force = false;
};

constexpr auto replace = nlohmann::json::error_handler_t::replace;  // text that is not UTF-8

std::string state_of(const ListedCheckpoint& checkpoint) {
  if (!checkpoint.damaged.empty()) return "damaged: " + checkpoint.damaged;
  return checkpoint.complete ? "complete" : "not complete";
}

/// `form` of the time in UTC; `unknown` when there is none.
std::string time_text(const ListedCheckpoint& checkpoint, const char* form, const char* unknown) {
  if (checkpoint.written == 0) return unknown;
  return fmt::format(fmt::runtime(form), fmt::gmtime(checkpoint.written));
}

nlohmann::json as_json(const ListedCheckpoint& checkpoint, const std::string& folder) {
  bool known = std::isfinite(checkpoint.loss);
  nlohmann::json object = {
      {"step", checkpoint.step},   {"complete", checkpoint.complete},
      {"bytes", checkpoint.bytes}, {"loss", known ? nlohmann::json(checkpoint.loss) : nlohmann::json()},
      {"folder", folder},          {"written", nlohmann::json()}};
  if (checkpoint.written != 0) object["written"] = time_text(checkpoint, "{:%FT%TZ}", "");
  if (!checkpoint.damaged.empty()) object["damaged"] = checkpoint.damaged;
  return object;
}

void print_table(const std::vector<ListedCheckpoint>& listed, const std::string& folder) {
  fmt::print("{}\n{:>12} {:>10} {:>10}  {:19}  state\n", printable(folder), "step", "size", "loss", "written (UTC)");
  for (const ListedCheckpoint& each : listed) {
    std::string loss = std::isfinite(each.loss) ? fmt::format("{:.4f}", each.loss) : "-";
    fmt::print("{:>12} {:>10} {:>10}  {:19}  {}\n", with_commas(static_cast<std::int64_t>(each.step)),
               human_bytes(static_cast<double>(each.bytes)), loss, time_text(each, "{:%F %T}", "-"), state_of(each));
  }
}

/// The asked-for checkpoint; one that the newest has to be taken before is named on stderr.
CheckpointView open(const Arguments& arguments) {
  if (arguments.step == 0) {
    for (const auto& one : service::find_manifests(service::find_checkpoints(arguments.folder)).passed_over()) {
      print_error("ganymede checkpoint: the checkpoint of step {} is passed over: {}\n", one.step, one.reason);
    }
  }
  return open_checkpoint(arguments.folder, arguments.step);
}

ExitCode run_list(const Arguments& arguments) {
  namespace fs = std::filesystem;
  std::vector<ListedCheckpoint> listed = list_checkpoints(arguments.folder);
  std::string folder = fs::absolute(service::find_checkpoints(arguments.folder)).lexically_normal().string();
  if (arguments.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const ListedCheckpoint& each : listed) json.push_back(as_json(each, folder));
    fmt::print("{}\n", json.dump(-1, ' ', false, replace));
  } else if (listed.empty()) {
    fmt::print("no checkpoint yet in {}\n", printable(folder));
  } else {
    print_table(listed, folder);
  }
  return ExitCode::done;
}

ExitCode run_verify(const Arguments& arguments) {
  CheckpointView view = open(arguments);
  ProgressLine line("verifying");
  Verification result = verify(view, [&](std::uint64_t done, std::uint64_t total) { line.show(done, total); });
  line.clear();
  ExitCode code = result.damage.empty() ? ExitCode::done : ExitCode::failed;
  if (arguments.json) {
    nlohmann::json damaged = nlohmann::json::array(), reasons = nlohmann::json::array();
    for (const Damage& damage : result.damage) {
      damaged.push_back(damage.where);
      reasons.push_back(damage.reason);
    }
    nlohmann::json json = {{"step", result.step},   {"complete", result.damage.empty()},
                           {"bytes", result.bytes}, {"values", result.values},
                           {"parts", result.parts}, {"damaged", damaged},
                           {"reasons", reasons}};
    if (arguments.hash) json["hash"] = result.hash;
    fmt::print("{}\n", json.dump(-1, ' ', false, replace));
    return code;
  }
  fmt::print("checkpoint of step {}: {} in {} values of {} {}, {}\n", result.step,
             human_bytes(static_cast<double>(result.bytes)), with_commas(static_cast<std::int64_t>(result.values)),
             result.parts, result.parts == 1 ? "part" : "parts", result.damage.empty() ? "all intact" : "damaged");
  for (const Damage& damage : result.damage) fmt::print("damaged: {}: {}\n", damage.where, damage.reason);
  if (arguments.hash && result.damage.empty()) fmt::print("hash {}\n", result.hash);
  return code;
}

ExitCode run_dump(const Arguments& arguments) {
  CheckpointView view = open(arguments);
  ProgressLine line("writing");
  std::uint64_t bytes = dump(view, arguments.to, arguments.force,
                             [&](std::uint64_t done, std::uint64_t total) { line.show(done, total); });
  line.clear();
  if (arguments.json) {
    fmt::print("{}\n",
               nlohmann::json({{"step", view.manifest().step}, {"bytes", bytes}, {"file", arguments.to}}).dump());
  } else {
    fmt::print("{}: parameters of step {}, {}\n", arguments.to, view.manifest().step,
               human_bytes(static_cast<double>(bytes)));
  }
  return ExitCode::done;
}

CLI::App* subcommand(CLI::App& app, Arguments& arguments, const char* name, const char* meaning) {
  CLI::App* command = app.add_subcommand(name, meaning);
  command->add_option("DIR", arguments.folder, "Run directory or checkpoint folder")->required();
  command->add_flag("--json", arguments.json, "Print JSON");
  return command;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Look at the checkpoints of a run, also while it is training", "ganymede checkpoint");
  app.require_subcommand(1);
  CLI::App* list = subcommand(app, arguments, "list", "Show all checkpoints");
  CLI::App* check = subcommand(app, arguments, "verify", "Read a whole checkpoint and check every value");
  CLI::App* write = subcommand(app, arguments, "dump", "Write the parameters into one safetensors file");
  for (CLI::App* command : {check, write}) {
    command->add_option("--step", arguments.step, "Step of the checkpoint (default: the newest)")
        ->check(command_line::between<std::int64_t>(1, 1'000'000'000'000));
  }
  check->add_flag("--hash", arguments.hash,
                  "Print a hash of names and values that does not depend on the number of ranks");
  write->add_option("--to", arguments.to, "File to write")->required();
  write->add_flag("--force", arguments.force, "Replace the file if it is there");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    command_line::refuse(app, error);
  }
  if (list->parsed()) return static_cast<int>(run_list(arguments));
  return static_cast<int>(check->parsed() ? run_verify(arguments) : run_dump(arguments));
}

}  // namespace

int commands(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return run_command("ganymede checkpoint: ", [&] { return parse_and_run(argc, argv); });
}

}  // namespace ganymede::checkpoint
