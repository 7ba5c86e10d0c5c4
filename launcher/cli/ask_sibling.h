#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// Runs a program that lies beside this one to its end and returns what it printed. `arguments[0]` is its name
/// ("ganymede-data"). Throws Error with its exit code (2, otherwise 1) and its last line, without its name, when that
/// is not 0; kills it after `seconds`.
std::string ask_sibling(std::vector<std::string> arguments, double seconds);

}  // namespace ganymede::cli
