#pragma once

#include <optional>
#include <string>

/// With which command the run in the current folder goes on, for those who were not at its terminal. It stays until a
/// run begins there again.
namespace ganymede::launcher {

struct GoOn {
  std::string folder;   // where its relative paths begin
  std::string command;  // one line of a shell
};

/// What cannot be noted (a full disk) is logged and no error.
void note_go_on(const GoOn& command);
/// Nothing: the run has not ended in order.
std::optional<GoOn> read_go_on();
/// Throws Error.
void clear_go_on();

}  // namespace ganymede::launcher
