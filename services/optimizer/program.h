#pragma once

namespace ganymede::optimizer {

/// The whole program `ganymede-optimizer`; returns its exit code.
///     --run DIR --rank R                 the optimizer server of one rank (started by the launcher)
///     prepare --run DIR                  copy and check the configured plugin, print what the launcher needs as JSON
///     list [--plugins FOLDER] [--json]   the plugins that there are
///     describe NAME [--plugins FOLDER] [--json]
int program(int argc, char** argv);

}  // namespace ganymede::optimizer
