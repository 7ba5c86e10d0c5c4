#include "tests/support/training_run.h"

#include <signal.h>

#include <fstream>

#include "common/base/error.h"
#include "common/os/files.h"
#include "tests/support/process_wait.h"
#include "tests/support/tiny_dataset.h"
#include "tests/support/tree.h"

namespace ganymede::test {

TrainingRun::TrainingRun(std::vector<std::string> settings, std::string programs)
    : recipe(std::string(GANYMEDE_SOURCE_DIR) + "/configs/recipes/tiny.toml"),
      folder_(home_.path() + "/run"),
      programs_(programs.empty() ? GANYMEDE_BINARY_DIR : std::move(programs)),
      output_file_(home_.path() + "/output"),
      settings_(std::move(settings)) {}

TrainingRun::~TrainingRun() {
  try {
    kill_everything();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

os::Command TrainingRun::command(const std::vector<std::string>& arguments) {
  if (data.empty()) data = tiny_dataset();
  os::Command command;
  command.arguments = prefix;
  auto add = [&](const std::vector<std::string>& more) {
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
  };
  add({programs_ + "/ganymede", "train", recipe, "--run", folder_, "--set", "data.path=" + data});
  add({"--set", "optimizer.warmup_steps=2"});
  for (const auto& setting : settings_) add({"--set", setting});
  add(arguments);
  command.environment = environment;
  command.output_file = output_file_;
  return command;
}

void TrainingRun::start(const std::vector<std::string>& arguments) { child_ = os::spawn(command(arguments)); }

int TrainingRun::wait(double seconds) {
  if (!child_) fail("The run was not started.");
  os::Child child = std::move(*child_);
  child_.reset();
  try {
    return wait_for_end(child, seconds).exit_code;
  } catch (const Error& error) {
    fail_with_output(error.what());
  }
}

int TrainingRun::train(const std::vector<std::string>& arguments, double seconds) {
  start(arguments);
  return wait(seconds);
}

void TrainingRun::signal(int number) { os::send_signal(*child_, number); }

void TrainingRun::kill_everything() {
  if (child_) {
    os::send_signal(*child_, SIGKILL);
    wait_for_end(*child_, 20);
    child_.reset();
  }
  for (int pid : leftovers()) ::kill(pid, SIGKILL);
  wait_until([this] { return leftovers().empty(); }, 20, "processes of the run are gone");
}

std::string TrainingRun::output() const { return os::read_file(output_file_); }

void TrainingRun::fail_with_output(const std::string& what) const { fail("{}\nThe run printed:\n{}", what, output()); }

std::vector<nlohmann::json> TrainingRun::metrics() const {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder_ + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // being written
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

std::vector<double> TrainingRun::losses() const {
  std::vector<double> all;
  for (const auto& line : metrics()) all.push_back(line.at("loss").get<double>());
  return all;
}

std::uint64_t TrainingRun::last_step() const {
  auto lines = metrics();
  return lines.empty() ? 0 : lines.back().at("step").get<std::uint64_t>();
}

void TrainingRun::wait_for_step(std::uint64_t step, double seconds) const {
  try {
    wait_until([&] { return last_step() >= step || (child_ && os::poll_ending(*child_)); }, seconds,
               fmt::format("step {}", step));
  } catch (const Error& error) {
    fail_with_output(error.what());
  }
  if (last_step() < step) fail_with_output(fmt::format("The run ended before step {}.", step));
}

TrainingRun::Answer TrainingRun::ganymede(const std::vector<std::string>& arguments, double seconds) const {
  std::vector<std::string> command = {programs_ + "/ganymede"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto finished = run_program(command, seconds);
  return {finished.exit_code, finished.output};
}

nlohmann::json TrainingRun::status() const {
  auto answer = ganymede({"ctl", folder_, "status", "--json"});
  if (answer.exit_code != 0) fail_with_output("ctl status: " + answer.output);
  return nlohmann::json::parse(answer.output);
}

int TrainingRun::pid_of(const std::string& service, int rank) const {
  return status().at("cells").at(static_cast<std::size_t>(rank)).at("services").at(service).at("pid").get<int>();
}

void TrainingRun::wait_for_state(const std::string& state, double seconds) const {
  auto reached = [&] {
    auto answer = ganymede({"ctl", folder_, "status", "--json"});
    return answer.exit_code == 0 && nlohmann::json::parse(answer.output).at("state") == state;
  };
  try {
    wait_until(reached, seconds, "state " + state);
  } catch (const Error& error) {
    fail_with_output(error.what());
  }
}

std::string TrainingRun::state_hash(std::optional<std::uint64_t> step) const {
  std::vector<std::string> arguments = {"checkpoint", "verify", folder_, "--hash", "--json"};
  if (step) arguments.insert(arguments.end(), {"--step", std::to_string(*step)});
  auto answer = ganymede(arguments);
  if (answer.exit_code != 0) fail_with_output("checkpoint verify: " + answer.output);
  return nlohmann::json::parse(answer.output).at("hash").get<std::string>();
}

std::vector<int> TrainingRun::leftovers() const { return processes_with(folder_); }

}  // namespace ganymede::test
