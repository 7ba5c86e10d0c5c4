#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/checkpoint/part_record.h"
#include "services/checkpoint/part_writer.h"

namespace ganymede::checkpoint {

/// Called between any two operations that a kill may part; tests end the process there.
using Reached = std::function<void(std::string_view point)>;

/// The database of this rank's parts, open for writing. One process at a time (RocksDB's lock, and the service's).
/// Not thread-safe. Every function throws Error naming what failed.
class PartStore {
 public:
  /// Opens or makes it in `folder`; removes files that an unfinished writer left there.
  PartStore(std::string folder, Reached reached);
  ~PartStore();
  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  /// Steps that have a column family, ascending; a kill may have left one without a part.
  std::vector<std::uint64_t> steps() const;
  /// The part record of a step; nothing when there is no complete and readable part.
  std::optional<PartRecord> record(std::uint64_t step) const;

  /// Where the files of a part of `step` are written, inside the database's folder so that they can be moved.
  std::string incoming_folder(std::uint64_t step) const;
  /// Takes the files in as the part of `step`, all or nothing; on return it is on disk.
  void ingest(std::uint64_t step, const PartFiles& files);
  void drop(std::uint64_t step);

 private:
  void remove_incoming() const;
  rocksdb::ColumnFamilyHandle* family(std::uint64_t step) const;

  std::string folder_;
  Reached reached_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

}  // namespace ganymede::checkpoint
