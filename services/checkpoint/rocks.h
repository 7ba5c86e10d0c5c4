#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <string>

namespace ganymede::checkpoint {

/// Options of a part's database: few large files that are written once, read once and dropped whole. No cache, no
/// compaction, no compression, few open files, a small information log, a checksum for every file.
rocksdb::Options database_options();

/// Throws Error "<doing>: <reason>." unless the status is ok. A full disk is named as such.
void check(const rocksdb::Status& status, const std::string& doing);

/// The reason of a status for a person, without the path prefixes that RocksDB repeats.
std::string reason(const rocksdb::Status& status);

}  // namespace ganymede::checkpoint
