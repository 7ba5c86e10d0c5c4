#include "launcher/cli/empty_words.h"

#include "common/base/error.h"

namespace ganymede::cli {

void refuse_empty(const CLI::App& command, const std::vector<std::pair<std::string, std::string>>& ways_out) {
  for (const auto& [name, way_out] : ways_out) {
    const CLI::Option* option = command.get_option(name);
    if (option->count() > 0 && option->as<std::string>().empty()) fail_usage("{} is empty: {}.", name, way_out);
  }
}

}  // namespace ganymede::cli
