#pragma once

#include <string>

#include "common/service/service.h"

/// Whether two programs can work in one run.
namespace ganymede::service {

/// What all programs of a run have to have in common, as text that is compared and shown: a hash over the messages, the
/// words of shared memory and the plugins' interface that this program was built with, "/", and a hash over the layouts
/// of the segments of the run in the current folder, as this program computes them. Throws Error when there is no run.
std::string protocol();

/// `ganymede-worker --protocol DIR`: prints the name of the program and the protocol for the run in DIR, in one line.
/// Returns the exit code; an error is one line on stderr.
int tell_protocol(Kind kind, const std::string& run);

/// The line that it prints.
std::string protocol_line(Kind kind, const std::string& protocol);

}  // namespace ganymede::service
