#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ganymede::cli {

/// One thing that doctor looked at.
struct Finding {
  std::string check;  // "memory"
  bool good = true;
  std::string text;  // what was found, and what to do when it is not good
};

/// Looks at programs, plugins, memory, cores, load, processor features, limits, disk and leftovers of earlier runs.
std::vector<Finding> examine();

/// What the mean number of running processes means on a machine of `cores`. Always good: nothing is to be mended.
Finding load_finding(double load, int cores);

/// Processes of runs that no keeper watches any more, as findings; one that is good when there are none.
Finding examine_leftovers();

/// Adds `doctor` to the command line. It prints one line a finding and throws Error when one is not good.
void add_doctor(CLI::App& app);

}  // namespace ganymede::cli
