#pragma once

#include <string>
#include <vector>

namespace ganymede::cli {

/// Path of a program that lies beside this one ("ganymede-data"). Throws Error when it is not there.
std::string sibling(const std::string& name);

/// Replaces this process by `arguments` (the first is the program's path). Throws Error when that is impossible.
[[noreturn]] void become(const std::vector<std::string>& arguments);

/// What is set for programs that use libtorch: it has to be there before they start.
void prepare_environment_for_torch();

}  // namespace ganymede::cli
