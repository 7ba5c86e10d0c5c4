#include "launcher/cli/first_checks.h"

#include "launcher/cli/ask_sibling.h"

namespace ganymede::cli {
namespace {

constexpr double check_seconds = 600;  // from a cold network file system

}  // namespace

void check_with_services(const std::string& recipe, const std::vector<std::string>& settings) {
  for (const char* program : {"ganymede-optimizer", "ganymede-data"}) {
    std::vector<std::string> arguments = {program, "check", recipe};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    ask_sibling(std::move(arguments), check_seconds);
  }
}

}  // namespace ganymede::cli
