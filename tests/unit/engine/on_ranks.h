#pragma once

#include <exception>
#include <functional>
#include <vector>

namespace ganymede::worker {

/// Runs `body(rank)` in a thread a rank. Returns when all have ended, what each of them threw.
std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(int)>& body);

}  // namespace ganymede::worker
