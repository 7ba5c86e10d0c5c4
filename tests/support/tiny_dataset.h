#pragma once

#include <string>

namespace ganymede::test {

/// Folder of a packed dataset that fits configs/recipes/tiny.toml (bytes, rows of 64, 12 rows a step): some 400 kB of
/// made-up source files. Made once per build folder with ganymede-data; later calls, also of other processes, find it.
/// Throws Error when it cannot be made.
std::string tiny_dataset();

}  // namespace ganymede::test
