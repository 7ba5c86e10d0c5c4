#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/service/service.h"
#include "services/worker/engine/communicators.h"

/// Joining a generation and the exchange that decides where to go on.
namespace ganymede::worker {

/// Waits for a generation that this rank has not joined yet and joins it. Nothing when the service must finish.
/// Throws Error at the deadline, naming `why` the wait is needed.
std::optional<std::uint64_t> join_next_generation(service::Context& context, Deadline deadline, const char* why);

/// The same after an attempt that failed. A launcher that saw a process die has begun a generation long before
/// `seconds` have passed. If it has not, no process is lost but the collectives are: this one ends at once, so that it
/// counts as dead and its replacement brings all together again.
std::optional<std::uint64_t> rejoin_or_die(service::Context& context, double seconds);

/// The exchange of the generation: afterwards every rank holds the newest decided record. Returns the next step to
/// compute. Throws CollectiveError, and Error when the ranks' states do not belong together.
std::uint64_t exchange(service::Context& context, Communicators& communicators, std::uint64_t generation,
                       Deadline deadline);

/// Returns when every rank has committed `step`; the caller's own cell first. Throws CollectiveError, Error.
void leave_together(service::Context& context, Communicators& communicators, std::uint64_t step,
                    const std::function<bool()>& give_up, double timeout_seconds);

}  // namespace ganymede::worker
