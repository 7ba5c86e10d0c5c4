#include "common/collectives/shm/bells.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "common/base/error.h"

namespace ganymede::collectives {
namespace {

// From linux/futex.h, which older systems' headers lack.
constexpr long futex_waitv_call = 449;
constexpr std::uint32_t futex_32_shared = 2;
struct Waiter {
  std::uint64_t value = 0, address = 0;
  std::uint32_t flags = futex_32_shared, reserved = 0;
};
constexpr std::size_t most_waiters = 128;

std::atomic<bool> kernel_can{true};

bool any_changed(std::span<const Bell> bells) {
  return std::any_of(bells.begin(), bells.end(),
                     [](const Bell& bell) { return bell.word->load(std::memory_order_acquire) != bell.seen; });
}

/// False when the kernel does not know the call.
bool sleep_in_kernel(std::span<const Bell> bells, Deadline deadline) {
  std::array<Waiter, most_waiters> waiters;
  for (std::size_t i = 0; i < bells.size(); ++i) {
    // Words are little-endian, a bell counts up by one: its low half changes with every ring.
    waiters[i].value = static_cast<std::uint32_t>(bells[i].seen);
    waiters[i].address = reinterpret_cast<std::uint64_t>(bells[i].word);
  }
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  auto nanoseconds = until.tv_nsec + deadline.left().count();
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  long result = ::syscall(futex_waitv_call, waiters.data(), bells.size(), 0, &until, CLOCK_MONOTONIC);
  return result >= 0 || (errno != ENOSYS && errno != EPERM);
}

}  // namespace

void wait_any(std::span<const Bell> bells, Deadline deadline) {
  GANYMEDE_CHECK(!bells.empty() && bells.size() <= most_waiters, "{} bells cannot be waited for", bells.size());
  if (any_changed(bells) || deadline.passed()) return;
  if (kernel_can && sleep_in_kernel(bells, deadline)) return;
  kernel_can = false;
  while (!any_changed(bells) && !deadline.passed()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace ganymede::collectives
