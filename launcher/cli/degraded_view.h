#pragma once

#include <string>
#include <vector>

#include "schemas/messages_generated.h"

namespace ganymede::cli {

/// What does not work in a run while its training goes on, as its launcher says it. Pure.
std::vector<std::string> degraded(const fbs::Status& status);

/// The same as lines of their own, each with a line end before it; nothing when all works.
std::string degraded_text(const fbs::Status& status);

}  // namespace ganymede::cli
