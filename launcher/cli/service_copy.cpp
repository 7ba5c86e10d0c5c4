#include "launcher/cli/service_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/printable.h"
#include "common/os/files.h"
#include "common/service/run_directory.h"
#include "launcher/cli/ask_sibling.h"
#include "launcher/supervisor/log_tail.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

constexpr double answer_seconds = 120;  // a cold network file system is slow

void require_program(const std::string& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail_usage("--binary {}: there is no such file.", path);
  if (!fs::is_regular_file(status)) fail_usage("--binary {}: that is no file.", path);
  if (::access(path.c_str(), X_OK) != 0) fail_usage("--binary {}: it is not executable: chmod +x it.", path);
}

/// A copy that is gone with this object unless it was given its place.
class Copy {
 public:
  explicit Copy(const std::string& path) : file_(fmt::format("{}/new.{}", service::program_folder, getpid())) {
    os::make_private_folder(service::program_folder);
    std::error_code error;
    fs::copy_file(path, file_, fs::copy_options::overwrite_existing, error);
    if (!error) fs::permissions(file_, fs::perms::owner_all, error);
    if (!error) return;
    std::string why = error.message();
    fs::remove(file_, error);
    fail("{} cannot be copied to {}: {}.", path, fs::absolute(file_).string(), why);
  }
  ~Copy() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const std::string& file() const { return file_; }
  void place(const std::string& name) {
    std::error_code error;
    fs::rename(file_, name, error);
    if (error) fail("{} cannot be made: {}.", fs::absolute(name).string(), error.message());
  }

 private:
  std::string file_;
};

/// What the program says of itself in the current run.
std::string protocol_of(const std::string& service, const std::string& file, const std::string& path) {
  Told told = ask_program({fs::absolute(file).string(), "--protocol", "."}, answer_seconds);
  auto lines = launcher::last_lines(told.output, 1);
  std::string line = lines.empty() ? "" : lines[0], name = fmt::format("ganymede-{} ", service);
  bool answered = told.ending.exit_code == 0 && line.starts_with(name) && line.size() > name.size();
  if (answered) return line.substr(name.size());
  fail_usage("--binary {}: that is no ganymede-{}, or one of before `--protocol`: asked for it in this run it {}{}.",
             path, service, told.ending.exit_code == 0 ? "says something else" : "ends with " + told.ending.describe(),
             line.empty() ? "" : fmt::format(" (\"{}\")", printable(line)));
}

}  // namespace

coordinator::ServiceBinary copy_service(const std::string& service, const std::string& path) {
  require_program(path);
  Copy copy(path);
  coordinator::ServiceBinary binary{
      .file = "", .path = path, .hash = hash64(os::read_file(copy.file())), .protocol = ""};
  binary.file = fmt::format("{}/ganymede-{}.{:016x}", service::program_folder, service, binary.hash);
  binary.protocol = protocol_of(service, copy.file(), path);
  copy.place(binary.file);
  return binary;
}

}  // namespace ganymede::cli
