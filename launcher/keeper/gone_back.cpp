#include "launcher/keeper/gone_back.h"

#include <filesystem>

#include "common/base/error.h"
#include "common/os/files.h"

namespace ganymede::keeper {
namespace {

constexpr const char* file = "ipc/gone.back";  // that it is there is all that counts

}  // namespace

void note_gone_back() { os::write_file_atomically(file, ""); }

bool has_gone_back() { return std::filesystem::exists(file); }

void clear_gone_back() {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) fail("File {} of the run directory cannot be removed: {}.", file, error.message());
}

}  // namespace ganymede::keeper
