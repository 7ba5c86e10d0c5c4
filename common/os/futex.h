#pragma once

#include "common/base/deadline.h"

#include <atomic>
#include <cstdint>

namespace ganymede::os {

/// Waits (across processes) until `word` is no longer `seen` or the deadline has passed; may return early. The
/// futex lies on the low 32 bits.
void wait_while_equal(const std::atomic<std::uint64_t>& word, std::uint64_t seen, Deadline deadline);

/// Stores with release order and wakes all waiters.
void store_and_wake(std::atomic<std::uint64_t>& word, std::uint64_t value);

/// Wakes all waiters.
void wake(std::atomic<std::uint64_t>& word);

}  // namespace ganymede::os
