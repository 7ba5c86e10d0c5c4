#pragma once

#include <string>

#include "schemas/messages_generated.h"

namespace ganymede::cli {

/// The services that do not run the installed program, and why one does not run what was ordered; a line each, each
/// behind a line end.
std::string binaries_text(const fbs::Status& status);

}  // namespace ganymede::cli
