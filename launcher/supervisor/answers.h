#pragma once

#include <string>

#include "common/msg/message.h"
#include "launcher/supervisor/supervisor.h"

namespace ganymede::launcher {

/// Throws Error for what is no service of a cell.
ServiceId service_id(fbs::ServiceKind kind, int rank);

/// The launcher's answer to one request, in the supervisor's thread. Throws Error for what is refused: a request of
/// another job, for a rank or service that does not exist, or that the state of the run does not allow.
msg::Message answer(Supervisor& supervisor, const std::string& identity, const msg::Message& request);

}  // namespace ganymede::launcher
