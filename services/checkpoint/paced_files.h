#pragma once

#include <rocksdb/env.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace ganymede::checkpoint {

constexpr std::size_t paced_bytes = 4 << 20;  // go to disk at once

/// Called in the writing thread whenever a further piece is on its way to disk.
using Wrote = std::function<void()>;

/// An environment for RocksDB whose files go to disk in pieces of `paced_bytes` as they are written: the next one is
/// begun when the one before is there. So the sync at the end has little left to do, however slow the disk and large
/// the file: a slow disk shows as slow progress, not as none.
std::unique_ptr<rocksdb::Env> paced_environment(Wrote wrote);

}  // namespace ganymede::checkpoint
