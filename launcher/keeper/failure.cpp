#include "launcher/keeper/failure.h"

#include <fstream>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "launcher/keeper/run_file.h"

namespace ganymede::keeper {
namespace {

constexpr const char* failure_file = "ipc/failed";

}  // namespace

void note_failure(const std::string& text) {
  try {
    os::write_file_atomically(failure_file, text.substr(0, text.find('\n')) + "\n");
  } catch (const Error& error) {
    log::warn("why the run failed could not be noted: {}", error.what());
  }
}

std::string read_failure() {
  std::ifstream file(failure_file);
  std::string line;
  std::getline(file, line);
  return line;
}

void clear_failure() { remove_run_file(failure_file); }

}  // namespace ganymede::keeper
