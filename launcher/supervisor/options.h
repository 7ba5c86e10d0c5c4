#pragma once

#include <set>
#include <string>
#include <vector>

#include "launcher/coordinator/world_layout.h"

namespace ganymede::launcher {

/// Command line of `ganymede-launcher`, as `ganymede train` and the keeper compose it.
struct Options {
  std::string run;                                   // run directory, absolute
  std::string recipe;                                // recipe file, absolute
  std::string from;                                  // the checkpoint to start from, or the step to go back to
  std::vector<std::string> settings;                 // "key=value", `--steps N` among them
  std::set<std::string> said = {};                   // keys of `settings` that a person has set
  std::vector<coordinator::NodeAddress> nodes = {};  // of a run over several nodes; else empty
  int node = 0;                                      // this one
  std::string key = {};  // file with the coordinator's key; empty: in node 0's run directory
};

/// Throws Error(usage) with what is wrong. Prints the help and ends the process for `--help`.
Options parse_options(int argc, char** argv);

}  // namespace ganymede::launcher
