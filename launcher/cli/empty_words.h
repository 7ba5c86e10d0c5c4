#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::cli {

/// Throws Error(usage) when one of these options was given an empty word, which is most often a variable of a script
/// that has no value: never the same as leaving the option out. By name, with the way out.
void refuse_empty(const CLI::App& command, const std::vector<std::pair<std::string, std::string>>& ways_out);

}  // namespace ganymede::cli
