#pragma once

namespace ganymede {

/// Orders all memory accesses before it and all after it, as std::atomic_thread_fence(seq_cst) does, which
/// ThreadSanitizer refuses.
inline void full_barrier() { __sync_synchronize(); }

}  // namespace ganymede
