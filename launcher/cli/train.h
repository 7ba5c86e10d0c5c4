#pragma once

#include <CLI/CLI.hpp>

namespace ganymede::cli {

/// Adds `train` to the command line. When it is called, the recipe is checked and this process becomes the keeper of
/// the run.
void add_train(CLI::App& app);

}  // namespace ganymede::cli
