#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/service/service.h"
#include "services/worker/engine/communicators.h"

/// Joining a generation and the exchange that decides where to go on.
namespace ganymede::worker {

/// Waits for a generation that this rank has not joined yet and joins it. Nothing when the service must finish.
/// Throws Error at the deadline, naming `why` the wait is needed.
std::optional<std::uint64_t> join_next_generation(service::Context& context, Deadline deadline, const char* why);

/// The same after an attempt that failed. A launcher that saw a process die has begun
/// another generation long before `seconds` have passed. If it has not, no process is lost but the collectives are:
/// `ask` is called once, to tell the coordinator, which begins another generation or ends the run. Throws Error when it
/// does neither.
std::optional<std::uint64_t> rejoin(service::Context& context, double seconds, const std::function<void()>& ask);

/// What `ask` is in production. Throws Error when the launcher cannot be reached.
void report_failed_generation(service::Context& context, std::uint64_t generation, const std::string& cause);

/// The operation of a worker between two generations, for `Context::at`: none of a plan's, so it is known by its words.
constexpr std::uint64_t in_words = ~std::uint64_t{0};

/// Where a generation begins.
struct Beginning {
  std::uint64_t step = 0;       // the next to compute
  bool update_pending = false;  // some rank has not committed the step before it
};

/// The exchange of the generation: afterwards every rank holds the newest decided record. Throws CollectiveError, and
/// Error when the ranks' states do not belong together.
Beginning exchange(service::Context& context, Communicators& communicators, std::uint64_t generation,
                   Deadline deadline);

/// Returns when every rank has committed `step`; the caller's own cell first. Throws CollectiveError, Error.
void leave_together(service::Context& context, Communicators& communicators, std::uint64_t step,
                    const std::function<bool()>& give_up, double timeout_seconds);

}  // namespace ganymede::worker
