#pragma once

#include <string>
#include <vector>

#include "common/os/process.h"

namespace ganymede::cli {

/// How a program ended and what it printed, stdout and stderr.
struct Told {
  os::Ending ending;
  std::string output;
};
/// Runs a program to its end. Throws Error when it cannot be started, or was not done after `seconds`: then it is
/// killed.
Told ask_program(const std::vector<std::string>& arguments, double seconds);

/// Runs a program that lies beside this one to its end and returns what it printed. `arguments[0]` is its name
/// ("ganymede-data"). Throws Error with its exit code (2, otherwise 1) and its last line, without its name, when that
/// is not 0; kills it after `seconds`.
std::string ask_sibling(std::vector<std::string> arguments, double seconds);

}  // namespace ganymede::cli
