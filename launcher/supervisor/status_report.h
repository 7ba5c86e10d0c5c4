#pragma once

#include "common/msg/message.h"
#include "launcher/supervisor/supervisor.h"

namespace ganymede::launcher {

/// The answer to a StatusRequest: every service of every cell, with what it does now. Uses the supervisor in its
/// thread.
msg::Message::BodyOffset status_report(flatbuffers::FlatBufferBuilder& builder, Supervisor& supervisor);

/// Buckets whose gradients of the step in work are ready, in the generation that this cell's worker has joined (rule 5:
/// no other pair counts).
std::size_t ready_gradients(const service::Control& control);

}  // namespace ganymede::launcher
