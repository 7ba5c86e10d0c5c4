#pragma once

#include <cstdint>
#include <functional>

#include "common/service/service.h"

namespace ganymede::optimizer {

/// Returns when the service has to finish or `ended` says so. Throws Error.
using Beside = std::function<void(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended)>;

/// The whole program `ganymede-optimizer`; returns its exit code.
///     --run DIR --rank R                 the optimizer server of one rank (started by the launcher)
///     prepare --run DIR                  copy and check the configured plugin, print what the launcher needs as JSON
///     list [--plugins FOLDER] [--json]   the plugins that there are
///     describe NAME [--plugins FOLDER] [--json]
/// `beside` gets the state epoch that the server serves; it runs in a thread of its own beside the server; what it
/// throws ends the service.
int program(int argc, char** argv, const Beside& beside);

}  // namespace ganymede::optimizer
