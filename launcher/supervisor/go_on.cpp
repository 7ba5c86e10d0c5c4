#include "launcher/supervisor/go_on.h"

#include <fstream>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "launcher/keeper/run_file.h"

namespace ganymede::launcher {
namespace {

constexpr const char* go_on_file = "ipc/go_on";

}  // namespace

void note_go_on(const GoOn& command) {
  try {
    os::write_file_atomically(go_on_file, command.folder + "\n" + command.command + "\n");
  } catch (const Error& error) {
    log::warn("the command that goes on could not be noted: {}", error.what());
  }
}

std::optional<GoOn> read_go_on() {
  std::ifstream file(go_on_file);
  GoOn command;
  if (!std::getline(file, command.folder) || !std::getline(file, command.command)) return std::nullopt;
  return command;
}

void clear_go_on() { keeper::remove_run_file(go_on_file); }

}  // namespace ganymede::launcher
