#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ganymede::cli {

/// Adds `ctl RUN status | where | stop | drain | checkpoint | segments | restart | …` to the command line. Each prints
/// its answer and throws Error when the run is not alive (but for `status`) or refuses.
void add_ctl(CLI::App& app);

/// The words of a command line; in one that asks for the help of a command of `ctl` without a RUN, one is put in.
std::vector<std::string> with_run_for_help(std::vector<std::string> words);

}  // namespace ganymede::cli
