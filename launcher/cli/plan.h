#pragma once

#include <CLI/CLI.hpp>

namespace ganymede::cli {

/// Adds `plan` to the command line: what a step of a recipe does on one rank, how long it would take and what memory
/// and traffic it needs, without running it.
void add_plan(CLI::App& app);

}  // namespace ganymede::cli
