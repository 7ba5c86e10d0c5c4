#include "launcher/keeper/program.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/run_command.h"
#include "common/base/standard_error.h"
#include "common/os/files.h"
#include "common/os/machine.h"
#include "common/service/run_directory.h"
#include "launcher/keeper/failure.h"
#include "launcher/keeper/gone_back.h"
#include "launcher/keeper/launcher_watch.h"
#include "launcher/keeper/segment_server.h"
#include "launcher/keeper/stop_order.h"

namespace ganymede::keeper {
namespace {

constexpr const char* usage = "ganymede-keeper --run DIR -- LAUNCHER [ARGUMENT...]";

struct Arguments {
  std::string run;
  std::vector<std::string> launcher;  // the command, with `--run DIR` as its first two arguments
};

Arguments parse_arguments(int argc, char** argv) {
  std::vector<std::string> given(argv + 1, argv + argc);
  if (given.size() < 4 || given[0] != "--run" || given[1].empty() || given[2] != "--") fail_usage("Usage: {}.", usage);
  Arguments arguments{given[1], {given[3], "--run", given[1]}};
  arguments.launcher.insert(arguments.launcher.end(), given.begin() + 4, given.end());
  return arguments;
}

void enter(const std::string& run) {
  os::make_private_folder(run);
  if (::chdir(run.c_str()) != 0) fail("Run directory {} cannot be entered: {}.", run, std::strerror(errno));
  for (const char* folder : {"ipc", service::log_folder, service::checkpoint_folder, service::plugin_folder}) {
    os::make_private_folder(folder);
  }
  // Whoever can write here can speak to the services.
  std::error_code error;
  std::filesystem::permissions("ipc", std::filesystem::perms::owner_all, error);
  if (error) fail("Run directory {} cannot be used: its folder ipc: {}.", run, error.message());
}

/// A folder where a service has to have a file would end each of its processes anew.
void require_files(const std::string& run) {
  for (const char* folder : {"ipc", service::log_folder}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::string ending = entry.path().extension().string();
      bool of_a_file = ending == ".log" || ending == ".out" || ending == ".lock" || ending == ".sock";
      if (!of_a_file || !entry.is_directory()) continue;
      fail("{} of the run directory {} is a folder, but a file has to have this name: move it away.",
           entry.path().string(), run);
    }
  }
}

os::Fd take_lock(const std::string& run) {
  if (auto lock = os::try_lock(service::lock_file)) return std::move(*lock);
  std::string holder = os::read_file(service::lock_file);
  fail_usage("Run directory {} is in use by process {}.", run, holder.substr(0, holder.find('\n')));
}

int keep(const Arguments& arguments) {
  enter(arguments.run);
  require_files(arguments.run);
  os::Fd lock = take_lock(arguments.run);
  log::start("keeper", fmt::format("{}/keeper.log", service::log_folder), true);
  clear_stop_order();
  clear_gone_back();
  std::uint64_t memory = os::inspect_machine().memory_total;
  SegmentStore store(memory > 0 ? memory : std::numeric_limits<std::uint64_t>::max());
  SegmentServer server(service::keeper_socket, store);
  try {
    return LauncherWatch(arguments.launcher, server).run();
  } catch (const Error& error) {
    note_failure(error.what());
    throw;
  }
}

}  // namespace

int program(int argc, char** argv) {
  // Here and in all that is started: a limit on file sizes, or a reader that went away, is an error of the write.
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return keep(parse_arguments(argc, argv));
  } catch (const Error& error) {
    print_error("{}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    print_error("{}\n", sentence_of(error));
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace ganymede::keeper
