#include "launcher/keeper/run_file.h"

#include <filesystem>

#include "common/base/error.h"

namespace ganymede::keeper {

void remove_run_file(const char* file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) fail("File {} of the run directory cannot be removed: {}.", file, error.message());
}

}  // namespace ganymede::keeper
