#pragma once

#include <string>

#include "schemas/messages_generated.h"

namespace ganymede::cli {

/// `ctl status --json` of a living run, one line.
std::string status_json(const fbs::Status& status);
/// The same for a person: a head line, then a table of services.
std::string status_text(const fbs::Status& status);

/// `ctl where`: per rank what each service does and for how long, and which rank everyone waits for.
std::string where_text(const fbs::Status& status);
std::string where_json(const fbs::Status& status);

/// `ctl status` of a run whose launcher does not serve, read from the run directory (the current folder); `state` is
/// "stopped", or while a launcher has no services what it says: "recovering" or "stopping", with `detail`. One that
/// failed is "failed" for a person, and says why; JSON has that as "failure" beside the state "stopped".
std::string idle_json(const std::string& state, const std::string& detail);
std::string idle_text(const std::string& state, const std::string& detail);

/// The rank that all others wait for; -1 when there is no single one. A worker that communicates waits for those that
/// do not; the rank whose worker is alone in not communicating is the one.
int awaited_rank(const fbs::Status& status);

}  // namespace ganymede::cli
