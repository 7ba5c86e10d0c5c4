#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace ganymede {

/// Runs what a person asked of a program and returns the program's exit code: that of `body`, or that of the exception
/// that left it, whose text goes to stderr as one line behind `prefix` ("ganymede-data: "). All that was printed has
/// reached stdout then; where it could not be written (a full disk), that is the line, and the code is 1. A reader of
/// a pipe that went away before the end is no fault.
int run_command(std::string_view prefix, const std::function<int()>& body);

/// One sentence for a person on an exception that is not an Error too: those of libraries name no way out, and some
/// have a stack behind the first line.
std::string sentence_of(const std::exception& error);

/// True for what says that memory or threads ran out: a limit of the machine, no fault of a program.
bool is_want_of_resources(const std::exception& error);

}  // namespace ganymede
