#pragma once

#include <string>

#include "launcher/coordinator/node_state.h"

namespace ganymede::cli {

/// Copies the program `path` (absolute) of a service ("worker") into the current run directory under its hash, and asks
/// it what protocol it speaks there. Throws Error(usage) when it is not such a program, Error when it cannot be copied;
/// then no copy stays.
coordinator::ServiceBinary copy_service(const std::string& service, const std::string& path);

}  // namespace ganymede::cli
