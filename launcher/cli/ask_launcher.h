#pragma once

#include <string>

#include "common/msg/client.h"

namespace ganymede::cli {

/// Enters a run directory. Throws Error when no job runs there.
void require_alive(const std::string& run);

/// The answer of the launcher of the current run directory. A launcher that ends, or is replaced, does not answer, and
/// one that takes over asks for a moment's patience; the keeper outlives it, so without one there is no answer to wait
/// for. Throws Refusal, Error.
msg::Message ask(const msg::Client::Fill& fill);

/// The launcher's Status. Throws as `ask` does.
msg::Message ask_status();

[[noreturn]] void fail_ended();

}  // namespace ganymede::cli
