#include "launcher/cli/plan_slots.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/run_command.h"
#include "common/os/files.h"
#include "common/os/process.h"
#include "launcher/cli/siblings.h"

namespace ganymede::cli {
namespace {

constexpr double describe_seconds = 20;

/// A file that is gone with this object.
class OutputFile {
 public:
  OutputFile() : path_((std::filesystem::temp_directory_path() / "ganymede-XXXXXX").string()) {
    int file = mkstemp(path_.data());
    if (file < 0) fail("No file can be made in {}: set TMPDIR to a folder that can be written.", path_);
    close(file);
  }
  ~OutputFile() { unlink(path_.c_str()); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

os::Ending wait_for(const os::Child& child) {
  Deadline deadline = Deadline::after_seconds(describe_seconds);
  while (true) {
    if (auto ending = os::poll_ending(child)) return *ending;
    if (deadline.passed()) os::send_signal(child, SIGKILL);
    pollfd wake{child.pidfd.get(), POLLIN, 0};
    poll(&wake, 1, 100);
  }
}

}  // namespace

std::vector<std::string> optimizer_slots(const config::Optimizer& optimizer) {
  OutputFile output;
  os::Command command;
  command.arguments = {sibling("ganymede-optimizer"), "describe", optimizer.name, "--json"};
  if (!optimizer.plugin_folder.empty()) {
    command.arguments.insert(command.arguments.end(), {"--plugins", optimizer.plugin_folder});
  }
  command.output_file = output.path();
  os::Ending ending = wait_for(os::spawn(command));
  std::string text = os::read_file(output.path());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (ending.exit_code != 0) fail("{}", text.empty() ? "ganymede-optimizer: " + ending.describe() : text);
  std::vector<std::string> slots;
  try {
    auto object = nlohmann::json::parse(text);
    for (const auto& slot : object.at("slots")) slots.push_back(slot.at("name").get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    fail("ganymede-optimizer does not describe {} as expected: {}.", optimizer.name, sentence_of(error));
  }
  return slots;
}

}  // namespace ganymede::cli
