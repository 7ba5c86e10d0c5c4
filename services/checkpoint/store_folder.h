#pragma once

#include <rocksdb/status.h>

#include <string>

namespace ganymede::checkpoint {

/// Why a rank's database must not be opened: an entry of its folder that is neither a file nor a folder, where RocksDB
/// would wait for whoever comes to the other end of a pipe. Empty: none. Without a full stop.
std::string why_not_opened(const std::string& folder);

/// Throws Error unless the status is ok, which is that of opening the database in `folder`, CHECKPOINTS/rank.R, for
/// writing: the missing file where that is the fault, else RocksDB's reason; and the way out.
void check_opened(const rocksdb::Status& status, const std::string& folder);

}  // namespace ganymede::checkpoint
