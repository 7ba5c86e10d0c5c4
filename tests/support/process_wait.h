#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/os/process.h"

namespace ganymede::test {

/// How much longer than a test says it waits before it gives up: what it says is meant for an idle machine.
constexpr double patience = 3;

/// Waits for the end of a child. Kills it and throws Error when it has not ended after `patience` times `seconds`.
os::Ending wait_for_end(const os::Child& child, double seconds);

/// Looks every 10 ms until `holds()`; throws Error naming `what` after `patience` times `seconds`.
void wait_until(const std::function<bool()>& holds, double seconds, const std::string& what);

/// Runs a program to its end; its stdout and stderr together.
struct Finished {
  int exit_code = -1;  // -1: a signal ended it
  std::string output;
};
Finished run_program(const std::vector<std::string>& arguments, double seconds);

/// Ids of living processes whose command line contains `text` (zombies do not count).
std::vector<int> processes_with(const std::string& text);

}  // namespace ganymede::test
