#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/config/config.h"
#include "common/os/machine.h"
#include "common/os/process.h"
#include "launcher/supervisor/service_id.h"

namespace ganymede::launcher {

/// The program of one service with arguments, environment and output file. `programs` is the folder where the programs
/// lie, `run` the run directory (absolute); `binary`: the program in the place of the one there, a file in the run
/// directory; empty: that one. A wrapped worker (launch.wrap_worker) keeps the launcher's own output, so
/// that a person can work with the wrapper.
os::Command service_command(const ServiceId& id, const config::Config& config, const os::Machine& machine,
                            const std::string& programs, const std::string& run, const std::string& binary = "");

/// Throws Error(usage) when launch.wrap_worker names a program that is not there.
void check_wrapper(const std::string& wrap_worker);

/// What every program that uses libtorch gets: it has to be there before it starts.
std::vector<std::pair<std::string, std::string>> torch_environment();

/// What a worker gets as well, so that its results do not depend on where it runs.
std::vector<std::pair<std::string, std::string>> worker_environment(const config::Config& config,
                                                                    const os::Machine& machine);

}  // namespace ganymede::launcher
