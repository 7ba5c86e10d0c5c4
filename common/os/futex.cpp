#include "common/os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

namespace ganymede::os {
namespace {

static_assert(std::endian::native == std::endian::little, "the futex lies on the low half of the word");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "words are shared between processes");

// The kernel compares the low half alone. A store that changes only the high half between our look and the sleep
// would be missed, so no sleep is longer than this.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(50);

void* address(const std::atomic<std::uint64_t>& word) { return const_cast<void*>(static_cast<const void*>(&word)); }

}  // namespace

void wait_while_equal(const std::atomic<std::uint64_t>& word, std::uint64_t seen, Deadline deadline) {
  while (word.load(std::memory_order_acquire) == seen && !deadline.passed()) {
    auto sleep = std::min(deadline.left(), longest_sleep).count();
    timespec limit = {0, static_cast<long>(sleep)};
    ::syscall(SYS_futex, address(word), FUTEX_WAIT, static_cast<std::uint32_t>(seen), &limit, nullptr, 0);
  }
}

void store_and_wake(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  word.store(value, std::memory_order_release);
  wake(word);
}

void wake(std::atomic<std::uint64_t>& word) {
  ::syscall(SYS_futex, address(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ganymede::os
