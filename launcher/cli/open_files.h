#pragma once

#include <cstdint>

/// How many files, sockets and shared segments a process may hold open at once (`ulimit -n`).
namespace ganymede::cli {

/// Raises the limit of this process, and so of all of the run, as far as it may and need be; returns it.
/// Throws Error when it is not known.
std::uint64_t raise_open_files();

/// Throws Error when a run of `ranks` could not hold its files and sockets with this limit: it would end
/// in the midst of something.
void require_open_files(std::uint64_t limit, int ranks);

}  // namespace ganymede::cli
