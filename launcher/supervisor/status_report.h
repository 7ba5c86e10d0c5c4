#pragma once

#include "common/msg/message.h"
#include "launcher/supervisor/supervisor.h"

namespace ganymede::launcher {

/// The answer to a StatusRequest: every service of every cell of all nodes, with what it does now. Uses the supervisor
/// in its thread.
msg::Message::BodyOffset status_report(flatbuffers::FlatBufferBuilder& builder, Supervisor& supervisor);

}  // namespace ganymede::launcher
