#pragma once

#include <cstdint>
#include <span>

#include "common/base/deadline.h"
#include "common/collectives/shm/channel_area.h"

namespace ganymede::collectives {

/// A word and the value that the sleeper last saw in it.
struct Bell {
  const SharedWord* word = nullptr;
  std::uint64_t seen = 0;
};

/// Sleeps until any of the words differs from what was seen, across processes, or the deadline has passed; may return
/// early. At most 128 words. Where the kernel has no futex_waitv (before 5.16) it looks every 200 µs.
void wait_any(std::span<const Bell> bells, Deadline deadline);

}  // namespace ganymede::collectives
