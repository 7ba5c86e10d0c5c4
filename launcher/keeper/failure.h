#pragma once

#include <string>

/// Why the run in the current folder failed, for those who look at it later. It stays until a run begins there again.
namespace ganymede::keeper {

/// The first line of `text` counts. What cannot be noted (a full disk) is logged and no error.
void note_failure(const std::string& text);
/// Empty: it did not fail.
std::string read_failure();
/// Throws Error.
void clear_failure();

}  // namespace ganymede::keeper
