#include "launcher/cli/ask_sibling.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/os/files.h"
#include "common/os/process.h"
#include "launcher/cli/siblings.h"
#include "launcher/supervisor/log_tail.h"

namespace ganymede::cli {
namespace {

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

}  // namespace

Told ask_program(const std::vector<std::string>& arguments, double seconds) {
  OutputFile output;
  os::Command command;
  command.arguments = arguments;
  command.output_file = output.path();
  auto ended = os::await_ending(os::spawn(command), Deadline::after_seconds(seconds));
  if (!ended)
    fail("{} was not done after {}: is the machine or its file system too busy?",
         std::filesystem::path(arguments.at(0)).filename().string(), human_seconds(seconds));
  return {*ended, os::read_file(output.path())};
}

std::string ask_sibling(std::vector<std::string> arguments, double seconds) {
  std::string name = arguments.at(0), prefix = name + ": ";
  arguments[0] = sibling(name);
  auto [ending, text] = ask_program(arguments, seconds);
  if (ending.exit_code == static_cast<int>(ExitCode::done)) return text;
  std::vector<std::string> lines = launcher::last_lines(text, 1);
  std::string last = lines.empty() ? prefix + ending.describe() : lines.back();
  bool usage = ending.exit_code == static_cast<int>(ExitCode::usage);
  throw Error(usage ? ExitCode::usage : ExitCode::failed,
              !lines.empty() && last.starts_with(prefix) ? last.substr(prefix.size()) : last);
}

}  // namespace ganymede::cli
