#pragma once

#include <cstddef>

namespace ganymede::collectives {

/// From this many bytes on a message leaves nothing of use in the caches.
constexpr std::size_t streamed_message = 6u << 20;

/// Copies with stores that bypass the caches, so that the old content of `to` is not read first. Any alignment. What
/// was written is visible to other threads after a later release store of this one.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace ganymede::collectives
