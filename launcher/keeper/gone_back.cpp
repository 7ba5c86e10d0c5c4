#include "launcher/keeper/gone_back.h"

#include <filesystem>

#include "common/os/files.h"
#include "launcher/keeper/run_file.h"

namespace ganymede::keeper {
namespace {

constexpr const char* file = "ipc/gone.back";  // that it is there is all that counts

}  // namespace

void note_gone_back() { os::write_file_atomically(file, ""); }

bool has_gone_back() { return std::filesystem::exists(file); }

void clear_gone_back() { remove_run_file(file); }

}  // namespace ganymede::keeper
