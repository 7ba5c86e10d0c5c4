#pragma once

#include <string>
#include <vector>

namespace ganymede::launcher {

/// Command line of `ganymede-launcher`, as `ganymede train` and the keeper compose it.
struct Options {
  std::string run;                    // run directory, absolute
  std::string recipe;                 // recipe file, absolute
  std::string from;                   // run or checkpoint directory to start from; empty: none
  std::vector<std::string> settings;  // "key=value", `--steps N` among them
};

/// Throws Error(usage) with what is wrong. Prints the help and ends the process for `--help`.
Options parse_options(int argc, char** argv);

}  // namespace ganymede::launcher
