#include "launcher/cli/siblings.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "common/base/error.h"
#include "common/os/process.h"
#include "launcher/supervisor/service_command.h"

namespace ganymede::cli {

std::string sibling(const std::string& name) {
  std::string path = os::program_folder() + "/" + name;
  if (access(path.c_str(), X_OK) != 0)
    fail("Program {} is missing: build it (`./bootstrap`, or `cmake --build` in the build folder).", path);
  return path;
}

void become(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  execv(pointers[0], pointers.data());
  fail("{} cannot be started: {}.", arguments[0], std::strerror(errno));
}

void prepare_environment_for_torch() {
  for (const auto& [name, value] : launcher::torch_environment()) setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace ganymede::cli
